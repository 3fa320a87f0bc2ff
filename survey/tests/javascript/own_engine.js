// A worker that asks the browser's own engine, which may never answer.
onmessage = ({ data: [value, pattern] }) =>
  postMessage(new RegExp("^(?:" + pattern + ")$", "u").test(value));
