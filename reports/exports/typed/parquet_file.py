"""Write Parquet in groups of rows, with labels in the metadata of each column.

A number without an answer has the code of its reason; a date and a text column cannot
hold both, so that a date is null, and a text has the code as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date
from typing import IO

import pyarrow as pa
from pyarrow import parquet

from reports.exports.cells import Cell, Number
from reports.exports.release_mask import COARSENED
from reports.exports.typed.columns import Column, Storage, seconds_of
from reports.exports.typed.typed_file import Encoder, TypedFile

# Bytes in memory of the rows that are written as one group.
GROUP_BYTES = 16 * 2**20
ZERO = date(1970, 1, 1)
WHOLE = pa.int64()
TYPES = {
    Storage.DAY: pa.date32(),
    Storage.TIME: pa.time32("s"),
    # Local time, as it was typed.
    Storage.MOMENT: pa.timestamp("s"),
    Storage.TEXT: pa.string(),
}
SECONDS_OF_A_DAY = 86_400


class ParquetFile(TypedFile):
    def names(self, headers: Sequence[str]) -> Sequence[str]:
        return headers

    def write_file(self, file: IO[bytes]) -> None:
        fields = [
            pa.field(column.name, arrow_type(column), metadata=metadata(column))
            for column in self.columns
        ]
        schema = pa.schema(fields, metadata={"title": self.title})
        encoders = [Encoder(cell_encoder(column)) for column in self.columns]
        with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            group: list[pa.RecordBatch] = []
            size = 0
            for _rows, columns in self.batches():
                arrays = [
                    pa.array(map(encoder.__getitem__, cells), field.type)
                    for encoder, cells, field in zip(
                        encoders, columns, schema, strict=True
                    )
                ]
                group.append(pa.record_batch(arrays, schema=schema))
                size += group[-1].nbytes
                if size >= GROUP_BYTES:
                    _write_group(writer, group)
                    group, size = [], 0
            if group:
                _write_group(writer, group)


def _write_group(
    writer: parquet.ParquetWriter, batches: Sequence[pa.RecordBatch]
) -> None:
    table = pa.Table.from_batches(batches)
    writer.write_table(table, row_group_size=table.num_rows)


def arrow_type(column: Column) -> pa.DataType:
    if column.storage is Storage.NUMBER:
        return WHOLE if column.is_whole else pa.float64()
    return TYPES[column.storage]


def metadata(column: Column) -> dict[str, str]:
    about = column.about
    texts = {
        "label": about.label,
        "values": json.dumps(about.values, ensure_ascii=False) if about.values else "",
        "missing": json.dumps(about.missing) if about.missing else "",
        "level": about.level,
        "choice": about.choice,
    }
    return {key: text for key, text in texts.items() if text}


def cell_encoder(column: Column) -> Callable[[Cell], str | int | float | None]:
    masked, storage = column.about.masked, column.storage
    if storage is Storage.TEXT:
        return lambda cell: cell or None
    if storage is Storage.NUMBER:
        number = int if column.is_whole else float

        def encode_number(cell: Cell) -> int | float | None:
            if not cell:
                return None
            return masked if cell == COARSENED else number(cell)

        return encode_number

    def encode_date(cell: Cell) -> int | None:
        # The reason why there is no date is in the other formats.
        if not cell or cell == COARSENED or isinstance(cell, Number):
            return None
        seconds = seconds_of(cell, storage, ZERO)
        return seconds // SECONDS_OF_A_DAY if storage is Storage.DAY else seconds

    return encode_date
