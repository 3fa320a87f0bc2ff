// Access codes as people type them: any case, with spaces or dashes.

const CODE_SYMBOLS = 12;

export function groupCode(typed) {
  const symbols = typed.toUpperCase().replace(/[^A-Z0-9]/g, "");
  return (symbols.slice(0, CODE_SYMBOLS).match(/.{1,4}/g) ?? []).join("-");
}

// Only while the caret is at the end: grouping would move it away from a person
// who corrects the middle of a code.
export function groupWhileTyping(field) {
  field.addEventListener("input", (event) => {
    const atEnd = field.selectionStart === field.value.length;
    if (atEnd && !event.isComposing && isCodeLike(field.value)) {
      field.value = groupCode(field.value);
    }
  });
  field.addEventListener("blur", () => {
    if (isCodeLike(field.value)) field.value = groupCode(field.value);
  });
}

// A code that is too long or has other characters stays as it is; the server
// says what is wrong with it.
function isCodeLike(typed) {
  const isPlain = /^[\sA-Za-z0-9-]*$/.test(typed);
  return isPlain && typed.replace(/[\s-]/g, "").length <= CODE_SYMBOLS;
}

// Selects the character at an index that counts code points, as the server does.
export function selectCharacter(field, at) {
  const characters = [...field.value];
  const start = characters.slice(0, at).join("").length;
  field.setSelectionRange(start, start + (characters[at] ?? "").length);
}

// Selects the character that no code has, where the server has marked one.
export function selectImpossible(field) {
  if (!field.dataset.character) return;
  field.focus();
  selectCharacter(field, Number(field.dataset.character));
}

// Links on cards and posters have the code in the fragment, which no server logs.
// It is removed from the address, so that it is not in the history either.
export function takeCodeFromAddress() {
  if (!location.hash) return "";
  const code = decodeFragment(location.hash);
  history.replaceState(null, "", location.pathname + location.search);
  return groupCode(code);
}

function decodeFragment(fragment) {
  try {
    return decodeURIComponent(fragment.slice(1));
  } catch {
    return "";
  }
}
