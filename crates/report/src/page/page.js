"use strict";
(() => {
  const short = v => String(+v.toPrecision(3));
  const scaled = (v, steps) => { for (const [limit, factor, unit] of steps) if (v < limit) return short(v * factor) + " " + unit; };
  const names = {
    "seconds": v => scaled(v, [[1e-6, 1e9, "ns"], [1e-3, 1e6, "µs"], [1, 1e3, "ms"], [Infinity, 1, "s"]]),
    "elapsed": v => v < 60 ? short(v) + " s" : Math.floor(v / 60) + " min " + short(v % 60) + " s",
    "bytes": v => scaled(v, [[1e3, 1, "B"], [1e6, 1e-3, "kB"], [1e9, 1e-6, "MB"], [1e12, 1e-9, "GB"], [Infinity, 1e-12, "TB"]]),
    "bytes/s": v => names.bytes(v) + "/s",
    "percentile": v => short(v * 100) + " %",
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
  const tip = document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip", hidden: true }));
  for (const svg of document.querySelectorAll("svg[data-x]")) {
    const [x, y] = [scale(svg.dataset.x), scale(svg.dataset.y)];
    const lines = [...svg.querySelectorAll("path[data-name]")].map(path => ({
      path, name: path.dataset.name,
      points: points(path.getAttribute("d")),
    }));
    const layers = [...svg.querySelectorAll("path[data-layer]")].map(path => ({
      name: path.dataset.layer,
      // Each part begins at zero.
      points: path.getAttribute("d").split("M").filter(Boolean).flatMap(part => points("M" + part.split("V")[0]).slice(1)),
    }));
    const cursor = document.createElementNS(svg.namespaceURI, "path");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect(), ratio = svg.viewBox.baseVal.width / box.width;
      const at = Math.min(Math.max((event.clientX - box.left) * ratio, x.from), x.to);
      const told = lines.filter(line => !line.path.hasAttribute("hidden") && line.points.length).map(line => {
        const near = line.points.reduce((best, point) => Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best);
        return line.name + "  " + y.text(y.value(near[1]));
      });
      if (layers.length) {
        const nearest = layers[0].points.reduce((best, point, i) => Math.abs(point[0] - at) < Math.abs(layers[0].points[best][0] - at) ? i : best, 0);
        const edges = [...layers.map(layer => y.value(layer.points[nearest][1])), 0];
        told.push(...layers.map((layer, i) => layer.name + "  " + y.text(Math.max(edges[i] - edges[i + 1], 0))));
      }
      cursor.setAttribute("d", `M${at} ${y.to}V${y.from}`);
      tip.textContent = [x.text(x.value(at)), ...told].join("\n");
      tip.hidden = false;
      tip.style.left = Math.min(event.pageX + 14, scrollX + innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = event.pageY + 14 + "px";
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; cursor.setAttribute("d", ""); });
  }
  for (const figure of document.querySelectorAll("figure")) {
    const found = [...new Set([...figure.querySelectorAll("path[data-name]")].map(path => path.dataset.name))];
    if (found.length < 2) continue;
    const row = document.createElement("div");
    row.className = "hide";
    for (const name of found) {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
      const label = document.createElement("label");
      label.append(box, name);
      row.append(label);
      box.addEventListener("change", () => {
        for (const path of figure.querySelectorAll("path[data-name]")) {
          if (path.dataset.name === name) { path.toggleAttribute("hidden", !box.checked); path.style.display = box.checked ? "" : "none"; }
        }
      });
    }
    figure.querySelector("figcaption").after(row);
  }
})();
