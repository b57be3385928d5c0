// A flame graph that the server laid out: frames as buttons with text, so that they can be searched, read out and focused.
kinds.flame = (panel) => {
  const note = element("p", "note", panel.note), outer = element("div", "flames"), box = outer.appendChild(element("div", "flame"));
  outer.tabIndex = 0;
  outer.setAttribute("role", "region");
  outer.setAttribute("aria-label", "Flame graph");
  const wanted = state.search.toLowerCase();
  let root = null;
  const draw = () => {
    const [, left0, depth0, width0] = root === null ? [0, 0, 0, 1] : panel.frames[root];
    const inside = panel.frames.map((frame, i) => [frame, i]).filter(([[, left, depth, width]]) => depth >= depth0 && left >= left0 - 1e-9 && left + width <= left0 + width0 + 1e-9);
    box.style.height = 19 * (1 + Math.max(0, ...inside.map(([frame]) => frame[2] - depth0))) + "px";
    box.replaceChildren(...inside.map(([[name, left, depth, width], i]) => {
      const label = panel.names[name], share = width / width0;
      const button = element("button", "frame" + (wanted && label.toLowerCase().includes(wanted) ? " hit" : ""), share > 0.02 ? label : "");
      button.type = "button";
      button.style.cssText = `left:${100 * (left - left0) / width0}%;width:${100 * share}%;top:${19 * (depth - depth0)}px`;
      button.style.setProperty("--hue", [...label].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 40, 7));
      button.title = `${label}\n${timeText(width * panel.seconds * TICKS)}, ${plain(100 * width, 1)} %`;
      button.setAttribute("aria-label", button.title);
      button.addEventListener("click", () => { root = root === i ? null : i; draw(); });
      return button;
    }));
  };
  draw();
  return [note, outer];
};
