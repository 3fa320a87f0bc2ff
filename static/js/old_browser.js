// Opens the survey's pages that need no script where its scripts can't run: the
// browser is older than docs/decisions/0073-supported-browsers.md says, or lacks a
// part of it.
// Not a module, and in the JavaScript of 2009, which every browser reads.

(function () {
  var link = document.querySelector("#simple-version a");
  var isMissing = false;

  function leave() {
    // The first page removes the link.
    if (link && document.getElementById("simple-version")) location.replace(link.href);
  }

  window.addEventListener(
    "error",
    function (event) {
      // A script that was not delivered: the network is down, and the link on the
      // page appears by itself.
      if (event.target && event.target.tagName === "SCRIPT") isMissing = true;
      // An extension's script is not ours.
      else if (String(event.filename).indexOf("/static/") >= 0) leave();
    },
    true
  );
  window.addEventListener("unhandledrejection", leave);
  // Modules have run by then, or never will.
  window.addEventListener("load", function () {
    if (!isMissing && !document.documentElement.hasAttribute("data-started")) leave();
  });
})();
