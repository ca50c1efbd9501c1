// Sparklines of a table, as SVG: a hundred canvases at once would hold the browser up.

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

/** An empty sparkline; `drawSpark` fills it. */
export function spark() {
  const picture = svg("svg", { viewBox: "0 0 96 22", preserveAspectRatio: "none", class: "spark", role: "img" });
  picture.append(svg("path", { class: "area" }), svg("path", { class: "stroke" }));
  return picture;
}

/** Draw values, oldest first; null is a gap. Says in words whether they rise or fall, or that the last is not known. */
export function drawSpark(picture, values, unknownNow = false) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 1);
  const flat = known.length < 2 || !known.some((value) => value);
  const x = (at) => ((at * 96) / Math.max(1, values.length - 1)).toFixed(1);
  let line = "";
  if (!flat) {
    let pen = "M";
    values.forEach((value, at) => {
      if (value === null) pen = "M";
      else {
        line += `${pen}${x(at)} ${(20 - (18 * value) / most).toFixed(1)}`;
        pen = "L";
      }
    });
  }
  const drawn = `${line} ${unknownNow}`;
  if (picture.drawn === drawn) return;
  picture.drawn = drawn;
  picture.lastChild.setAttribute("d", line);
  picture.firstChild.setAttribute("d", line && !values.includes(null) ? `${line}L96 22L0 22Z` : "");
  const last = known.at(-1) ?? 0;
  const usual = known.reduce((total, value) => total + value, 0) / Math.max(1, known.length);
  const look = last > usual * 1.2 + 10 ? "up" : last < usual * 0.8 - 10 ? "down" : "level";
  picture.setAttribute("class", `spark ${look}`);
  picture.setAttribute("aria-label", flat ? (unknownNow ? "lag not known" : "no lag") : { up: "rising", down: "falling", level: "level" }[look]);
}
