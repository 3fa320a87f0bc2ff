// The school finder: the location is asked for on a tap, and never before.

// Neighbours share a page of nginx's cache, and the server learns no more than
// the part of town.
function cutDegrees(degrees) {
  return String(Math.trunc(degrees * 100) / 100);
}

function showNearby({ coords }) {
  const query = new URLSearchParams(location.search);
  const language = query.get("language");
  const search = new URLSearchParams(language ? { language } : {});
  search.set("lat", cutDegrees(coords.latitude));
  search.set("lon", cutDegrees(coords.longitude));
  location.assign(`/schools/?${search}`);
}

function startNearMe() {
  const button = document.getElementById("near-me");
  const status = document.getElementById("near-me-status");
  // Not there where no school has a location.
  if (!button || !navigator.geolocation) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    status.hidden = false;
    status.textContent = button.dataset.locating;
    const showFailure = () => {
      status.textContent = button.dataset.failed;
    };
    const options = { timeout: 10000, maximumAge: 300000 };
    navigator.geolocation.getCurrentPosition(showNearby, showFailure, options);
  });
}

startNearMe();
