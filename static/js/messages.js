// The texts around a survey, in the language of the page.

export function fillIn(text, values) {
  return text.replace(/\{(\w+)\}/g, (place, name) =>
    name in values ? String(values[name]) : place,
  );
}

export class Messages {
  constructor(messages, language) {
    this.messages = messages;
    this.language = language;
  }

  text(key, values = {}) {
    return fillIn(this.messages[key] ?? key, values);
  }

  // Uses the message `key`, or `key_one` for exactly one.
  plural(key, n) {
    return n === 1 ? this.text(`${key}_one`, { n }) : this.text(key, { n });
  }

  has(key) {
    return key in this.messages;
  }

  time(moment) {
    return localTime(moment, this.language, { hour: "numeric", minute: "2-digit" });
  }
}

// Falls back to the browser's language for a code that it does not know.
export function localTime(moment, language, format) {
  try {
    return new Intl.DateTimeFormat(language, format).format(new Date(moment));
  } catch {
    return new Intl.DateTimeFormat(undefined, format).format(new Date(moment));
  }
}
