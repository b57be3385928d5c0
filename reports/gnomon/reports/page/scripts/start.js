// Begin: the page as the hash wants it at once, the panels once the recording is decoded.
setTheme(quietly(() => localStorage.getItem("gnomon-theme")) || "system");
form.hidden = document.querySelector("nav").hidden = map.hidden = false;
state = readHash(location.hash);
showTab();
showFilter();
showBrush();
onChange((before) => {
  if (!data) return;
  fitWanted = fitWanted || before.from !== state.from || before.to !== state.to;
  later("draw", draw);
});
themeActs.push(() => { if (data && state.tab === "workers") showHeat(); });
const whenIdle = (act) => (window.requestIdleCallback || setTimeout)(() => act());
const ready = decode().then(async (decoded) => {
  decoded.laid = await layOut(decoded, await waitingOf(decoded));
  await pause();
  data = decoded;
  drawMap();
  if (filtered() || state.tab !== "summary") draw();
  document.documentElement.dataset.ready = "yes";
  whenIdle(() => prepareTimeline().then(() => { whenIdle(refine); whenIdle(currentAccount); }).catch((error) => fail("timeline", error)));
}).catch((error) => {
  byId("scope").textContent = "the recording could not be read: " + error.message;
  document.documentElement.dataset.ready = "failed";
});
return { ready, get shown() { return shown; }, get state() { return state; }, get data() { return data; }, accountOf, detail, textsOf, colorOf, step, setRange, drawAll };
