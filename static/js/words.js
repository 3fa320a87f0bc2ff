// The words of the frame around a survey, in the language of the page.

export function fillIn(text, values) {
  return text.replace(/\{(\w+)\}/g, (place, name) =>
    name in values ? String(values[name]) : place,
  );
}

export class Words {
  constructor(messages, language) {
    this.messages = messages;
    this.language = language;
  }

  say(key, values = {}) {
    return fillIn(this.messages[key] ?? key, values);
  }

  // `key` for several, `key_one` for one.
  count(key, n) {
    return n === 1 ? this.say(`${key}_one`, { n }) : this.say(key, { n });
  }

  has(key) {
    return key in this.messages;
  }

  time(moment) {
    return localTime(moment, this.language, { hour: "numeric", minute: "2-digit" });
  }
}

// A language code that the browser does not know must not break the page.
export function localTime(moment, language, format) {
  try {
    return new Intl.DateTimeFormat(language, format).format(new Date(moment));
  } catch {
    return new Intl.DateTimeFormat(undefined, format).format(new Date(moment));
  }
}
