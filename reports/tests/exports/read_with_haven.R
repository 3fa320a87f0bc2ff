# Reads a file of SPSS or Stata with haven, and writes what it has as JSON.
#
#   Rscript read_with_haven.R FILE

file <- commandArgs(trailingOnly = TRUE)[1]
data <- if (endsWith(file, ".dta")) {
  haven::read_dta(file)
} else {
  haven::read_sav(file, user_na = TRUE)
}

# Numbers as texts that have all of their digits; reasons of Stata's as letters.
as_cells <- function(values) {
  if (is.character(values)) return(as.list(values))
  numbers <- as.double(unclass(values))
  cells <- as.list(sprintf("%.17g", numbers))
  cells[is.na(numbers)] <- list(NULL)
  tags <- haven::na_tag(numbers)
  cells[!is.na(tags)] <- paste0(".", tags[!is.na(tags)])
  cells
}

describe <- function(column) {
  labels <- attr(column, "labels")
  list(
    class = class(column)[1],
    format = attr(column, "format.spss"),
    is_text = is.character(column),
    cells = as_cells(column),
    label = attr(column, "label"),
    codes = as_cells(unname(labels)),
    texts = as.list(names(labels)),
    missing_values = as.list(attr(column, "na_values")),
    missing_range = as.list(attr(column, "na_range"))
  )
}

described <- list(
  haven = as.character(packageVersion("haven")),
  rows = nrow(data),
  names = as.list(names(data)),
  columns = unname(lapply(data, describe))
)
json <- jsonlite::toJSON(described, auto_unbox = TRUE, null = "null", digits = NA)
writeLines(enc2utf8(json), stdout(), useBytes = TRUE)
