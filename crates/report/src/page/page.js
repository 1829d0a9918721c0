"use strict";
(() => {
  const short = v => String(+v.toPrecision(3));
  const scaled = (v, steps) => { for (const [limit, factor, unit] of steps) if (v < limit) return short(v * factor) + " " + unit; };
  const names = {
    "seconds": v => scaled(v, [[1e-6, 1e9, "ns"], [1e-3, 1e6, "µs"], [1, 1e3, "ms"], [Infinity, 1, "s"]]),
    "elapsed": v => {
      if (v < 60) return short(v) + " s";
      const tenths = Math.round(v * 10), seconds = tenths % 600 / 10;
      return Math.floor(tenths / 600) + " min" + (seconds ? " " + seconds + " s" : "");
    },
    "bytes": v => scaled(v, [[1e3, 1, "B"], [1e6, 1e-3, "kB"], [1e9, 1e-6, "MB"], [1e12, 1e-9, "GB"], [Infinity, 1e-12, "TB"]]),
    "bytes/s": v => names.bytes(v) + "/s",
    // Never rounded up to all of them.
    "percentile": v => v >= 1 ? "max" : +(v * 100).toFixed(Math.max(0, Math.ceil(-Math.log10(Math.max(1 - v, 1e-9))) - 1)) + " %",
    "seconds-per-row": v => short(v * 1e9) + " ns",
  };
  const scale = text => {
    const [spread, low, high, from, to, quantity] = text.split(" ");
    const straight = { linear: v => v, log: Math.log10, nines: v => -Math.log10(Math.max(1 - v, 1e-12)) }[spread];
    const back = { linear: v => v, log: v => 10 ** v, nines: v => 1 - 10 ** -v }[spread];
    const [a, b] = [straight(+low), straight(+high)];
    return {
      value: pixel => back(a + (pixel - from) / (to - from) * (b - a)),
      text: v => (names[quantity] || short)(v), from: +from, to: +to,
    };
  };
  // M is followed by a point, l by distances.
  const points = data => {
    const found = [];
    for (const [, command, text] of data.matchAll(/([Ml])([^Mlh]*)/g)) {
      const numbers = text.match(/-?\d*\.?\d+/g).map(Number);
      for (let i = 0; i + 1 < numbers.length; i += 2) {
        const [x, y] = command === "l" ? found[found.length - 1] : [0, 0];
        found.push([x + numbers[i], y + numbers[i + 1]]);
      }
    }
    return found;
  };
  const nearest = (points, x) => points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);
  const element = (name, properties) => Object.assign(document.createElement(name), properties);
  const drawn = (svg, name, attributes) => {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const tip = document.querySelector("main").appendChild(element("div", { className: "tip", hidden: true }));

  // A drawing with two axes. Its window is the part of the x axis that is shown, in shares of the whole.
  const plane = svg => {
    const [x, y] = [scale(svg.dataset.x), scale(svg.dataset.y)];
    const width = x.to - x.from;
    // Each part goes along the highest values and back along the lowest: those of a point are at the same distance from both ends.
    const ranges = new Map([...svg.querySelectorAll("path[data-range]")].map(path => [path.dataset.range,
      path.getAttribute("d").split("Z").filter(Boolean).map(points).flatMap(part => {
        const half = part.length / 2;
        return part.slice(0, half).map((point, i) => [point[0], point[1], part[2 * half - 1 - i][1]]);
      })]));
    const lines = [...svg.querySelectorAll("path[data-name]")].map(path => ({
      path, name: path.dataset.name, points: points(path.getAttribute("d")), range: ranges.get(path.dataset.name),
    }));
    const layers = [...svg.querySelectorAll("path[data-layer]")].map(path => ({
      name: path.dataset.layer,
      // Each part begins at zero.
      points: path.getAttribute("d").split("M").filter(Boolean).flatMap(part => points("M" + part.split("V")[0]).slice(1)),
    }));
    const marks = [...svg.children].filter(child => child.matches(".range,.line,.mark,.layer,.checkpoint,.maintenance,.moment"));
    const labels = [...svg.children].filter(child => child.matches("text.middle,text.count,path.x") || child.matches("line.grid") && child.getAttribute("x1") === child.getAttribute("x2"));
    // Below are the lanes of events.
    const bottom = y.from + +svg.dataset.below, height = bottom - y.to;
    const inner = drawn(svg, "svg", { class: "window", x: x.from, y: y.to, width, height, preserveAspectRatio: "none" });
    const ticks = drawn(svg, "g", {});
    const cursor = drawn(svg, "path", { class: "cursor" });
    const chosen = drawn(svg, "path", { class: "chosen" });
    let window = [0, 1];
    const place = marks.length ? marks[marks.length - 1].nextSibling : null;
    svg.append(ticks, chosen, cursor);
    const show = (from, to) => {
      window = [from, to];
      const whole = from === 0 && to === 1;
      labels.forEach(label => { label.style.display = whole ? "" : "none"; });
      ticks.replaceChildren();
      if (whole) {
        marks.forEach(mark => svg.insertBefore(mark, place));
        inner.remove();
        return;
      }
      inner.setAttribute("viewBox", `${x.from + from * width} ${y.to} ${(to - from) * width} ${height}`);
      inner.style.setProperty("--narrow", to - from);
      inner.append(...marks);
      svg.insertBefore(inner, chosen);
      const most = svg.viewBox.baseVal.width < 500 ? 2 : 4;
      for (let i = 0; i <= most; i++) {
        const at = x.from + i / most * width;
        const text = drawn(svg, "text", { x: at, y: bottom + 16, class: i === 0 ? "" : i === most ? "end" : "middle" });
        text.textContent = x.text(value(at));
        ticks.append(drawn(svg, "line", { class: "grid", x1: at, x2: at, y1: y.to, y2: bottom }), text);
      }
    };
    const share = at => window[0] + (at - x.from) / width * (window[1] - window[0]);
    const value = at => x.value(x.from + share(at) * width);
    const at = event => {
      const box = svg.getBoundingClientRect();
      return Math.min(Math.max((event.clientX - box.left) * svg.viewBox.baseVal.width / box.width, x.from), x.to);
    };
    svg.addEventListener("pointermove", event => {
      const here = at(event), whole = x.from + share(here) * width;
      const told = lines.filter(line => !line.path.hasAttribute("hidden") && line.points.length).map(line => {
        const [, median] = nearest(line.points, whole);
        const [, high, low] = line.range ? nearest(line.range, whole) : [];
        const around = line.range && high !== low ? " (" + y.text(y.value(low)) + " to " + y.text(y.value(high)) + ")" : "";
        return line.name + "  " + y.text(y.value(median)) + around;
      });
      if (layers.length) {
        const near = layers[0].points.reduce((best, point, i) => Math.abs(point[0] - whole) < Math.abs(layers[0].points[best][0] - whole) ? i : best, 0);
        const edges = [...layers.map(layer => y.value(layer.points[near][1])), 0];
        told.push(...layers.map((layer, i) => layer.name + "  " + y.text(Math.max(edges[i] - edges[i + 1], 0))));
      }
      cursor.setAttribute("d", `M${here} ${y.to}V${y.from}`);
      tip.textContent = [x.text(value(here)), ...told].join("\n");
      tip.hidden = false;
      tip.style.left = Math.min(event.pageX + 14, scrollX + innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = event.pageY + 14 + "px";
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; cursor.setAttribute("d", ""); });
    return { svg, x, y, show, share, at, chosen };
  };

  const zoomed = figure => {
    const planes = [...figure.querySelectorAll("svg[data-x]")].map(plane);
    if (!planes.length) return;
    const title = figure.previousElementSibling.textContent, x = planes[0].x;
    const STEPS = 1000, LEAST = 5;
    const row = element("div", { className: "hide zoom" });
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", `Zoom: ${title}`);
    const ends = ["from", "to"].map((name, side) => {
      const range = element("input", { type: "range", min: 0, max: STEPS, value: side * STEPS });
      const label = element("label");
      label.append(name, range);
      row.append(label);
      range.addEventListener("input", () => {
        const other = ends[1 - side];
        if (+ends[1].value - ends[0].value < LEAST) other.value = side ? range.value - LEAST : +range.value + LEAST;
        if (+ends[1].value - ends[0].value < LEAST) range.value = side ? +other.value + LEAST : other.value - LEAST;
        zoom(ends[0].value / STEPS, ends[1].value / STEPS);
      });
      return range;
    });
    row.prepend("Zoom");
    const reset = element("button", { type: "button", textContent: "Show all" });
    reset.addEventListener("click", () => zoom(0, 1));
    row.append(reset);
    const zoom = (from, to) => {
      [ends[0].value, ends[1].value] = [Math.round(from * STEPS), Math.round(to * STEPS)];
      for (const range of ends) range.setAttribute("aria-valuetext", x.text(x.value(x.from + range.value / STEPS * (x.to - x.from))));
      reset.disabled = from === 0 && to === 1;
      planes.forEach(plane => plane.show(from, to));
    };
    for (const plane of planes) {
      let start = null;
      const end = () => { start = null; plane.chosen.setAttribute("d", ""); };
      plane.svg.addEventListener("pointerdown", event => {
        if (event.button !== 0 || event.pointerType === "touch") return;
        start = plane.at(event);
        plane.svg.setPointerCapture(event.pointerId);
        event.preventDefault();
      });
      plane.svg.addEventListener("pointermove", event => {
        if (start !== null) plane.chosen.setAttribute("d", `M${start} ${plane.y.to}H${plane.at(event)}V${plane.y.from}H${start}Z`);
      });
      plane.svg.addEventListener("pointerup", event => {
        const [from, to] = start === null ? [0, 0] : [start, plane.at(event)].sort((one, other) => one - other).map(plane.share);
        end();
        if (to - from >= LEAST / STEPS) zoom(from, to);
      });
      plane.svg.addEventListener("pointercancel", end);
      plane.svg.addEventListener("dblclick", () => zoom(0, 1));
    }
    zoom(0, 1);
    figure.querySelector("figcaption").after(row);
  };

  const hidden = figure => {
    // The last one drawn is the first of the legend.
    const found = [...new Set([...figure.querySelectorAll("path[data-name]")].map(path => path.dataset.name))].reverse();
    if (found.length < 2) return;
    // A line's markers follow it.
    const parts = new Map(found.map(name => [name, []]));
    for (const path of figure.querySelectorAll("path[data-range]")) parts.get(path.dataset.range).push(path);
    for (const path of figure.querySelectorAll("path[data-name]")) {
      const own = parts.get(path.dataset.name);
      for (let part = path; part === path || part?.matches(".mark"); part = part.nextElementSibling) own.push(part);
    }
    const row = element("div", { className: "hide" });
    for (const name of found) {
      const box = element("input", { type: "checkbox", checked: true });
      const label = element("label");
      label.append(box, name);
      row.append(label);
      box.addEventListener("change", () => parts.get(name).forEach(part => {
        part.toggleAttribute("hidden", !box.checked);
        part.style.display = box.checked ? "" : "none";
      }));
    }
    figure.querySelector("figcaption").after(row);
  };

  for (const figure of document.querySelectorAll("figure")) {
    hidden(figure);
    zoomed(figure);
  }
})();
