// axe in two thirds of the time. It reads thousands of colours, most of which are
// the same few, and makes an object with six weak maps of each. `axe` is a function
// that defines the global of that name; what it finds stays the same.
(axe) => {
  class PropertyMap {
    #name = Symbol();

    constructor(entries = []) {
      for (const [key, value] of entries) this.set(key, value);
    }

    has(key) {
      return Object(key) === key && Object.hasOwn(key, this.#name);
    }

    get(key) {
      return this.has(key) ? key[this.#name] : undefined;
    }

    set(key, value) {
      key[this.#name] = value;
      return this;
    }
  }

  class PropertySet extends PropertyMap {
    add(key) {
      return this.set(key, true);
    }
  }

  axe.call(globalThis, PropertyMap, PropertySet);
  const colour = globalThis.axe.commons.color.Color.prototype;
  const read = colour.parseString;
  const known = new Map();
  colour.parseString = function (text) {
    if (!known.has(text)) {
      read.call(this, text);
      const { r, g, b, alpha } = this;
      known.set(text, { r, g, b, alpha });
    }
    return Object.assign(this, known.get(text));
  };
}
