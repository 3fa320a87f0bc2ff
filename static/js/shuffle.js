// Shuffles options: the same order on every visit and device of one respondent,
// and a different one for each item, unless an item has a seed of its own.

// FNV-1a over the name's UTF-16 units, so that a respondent's items differ.
function hashOf(name) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  }
  return hash;
}

// Mulberry32: small, and uniform enough for options on a screen.
function randomFrom(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// A shuffled copy. `seed` is the respondent's 32-bit number. With `itemSeed`, the
// order is the same for everybody, and for all items with this seed.
export function shuffled(list, seed, itemName, itemSeed) {
  const random = randomFrom(itemSeed ?? seed ^ hashOf(itemName));
  const order = [...list];
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}
