// Lists the names in a script, for test_old_browsers.py. `used` are those that may
// come from outside: globals, and properties with the object before the dot.
// `methods` and `keys` are what it defines itself. Throws for newer syntax.

function namesInSource(source, version) {
  const sourceType = version > 5 ? "module" : "script";
  const found = { used: [], methods: [], keys: [] };
  const declared = new Set();
  visit(acorn.parse(source, { ecmaVersion: version, sourceType }), []);
  found.used = found.used.filter(({ name, object }) => object !== null || !declared.has(name));
  return found;

  // ancestors: [node, key of the next one], from the nearest
  function visit(node, ancestors) {
    if (node.bigint) throw new SyntaxError("a BigInt");
    if (node.regex && /\(\?<[=!]/.test(node.regex.pattern)) throw new SyntaxError("a lookbehind");
    if (node.type === "Identifier") note(node, ancestors);
    for (const key of Object.keys(node)) {
      for (const part of [node[key]].flat()) {
        if (part && typeof part.type === "string") visit(part, [[node, key], ...ancestors]);
      }
    }
  }

  function note({ name }, [[parent, key], [grandparent, place] = []]) {
    if (parent.type === "MemberExpression" && key === "property" && !parent.computed) {
      const isCall = grandparent.type === "CallExpression" && place === "callee";
      found.used.push({ name, object: nameOf(parent.object), isCall });
      if (grandparent.type === "AssignmentExpression") found.keys.push(name);
    } else if (parent.type === "MethodDefinition" && key === "key") {
      found.methods.push(name);
    } else if (parent.type === "Property" && key === "key" && !parent.computed) {
      const isMethod = /Function/.test(parent.value.type);
      found[isMethod ? "methods" : "keys"].push(name);
      if (grandparent.type === "ObjectPattern") declared.add(name);
    } else if (["id", "params", "local", "imported", "elements", "left", "param"].includes(key)) {
      declared.add(name);
      if (/^Import/.test(parent.type)) found.methods.push(name);
    } else {
      found.used.push({ name, object: null, isCall: false });
    }
  }

  function nameOf(object) {
    return object.name || (object.property && object.property.name) || "";
  }
}
