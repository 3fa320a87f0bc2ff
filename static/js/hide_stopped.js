// Hides the review before it is painted, when this browser's person has stopped for
// now: the modules that remove it run later, and may have to be fetched first.
// Not a module, and in the JavaScript of 2009, which every browser reads.

(function () {
  try {
    // The note of forget_device.js; complete.js looks whose it is.
    if (localStorage.getItem("groundswell stopping")) {
      document.documentElement.setAttribute("data-stopping", "");
    }
  } catch (error) {
    // Where the browser allows no storage, no other tab can have stopped.
  }
})();
