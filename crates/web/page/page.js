(function () {
  "use strict";
  // Text from the router only ever becomes text: nothing here writes HTML.
  var byId = function (id) { return document.getElementById(id); };
  var COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8a8a"];
  var KEPT = 600;
  var samples = [];
  var state = null;
  var shown = "overview";

  function element(name, attributes, content) {
    var made = document.createElement(name);
    Object.keys(attributes || {}).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    made.append.apply(made, [].concat(content === undefined ? [] : content));
    return made;
  }

  function number(value, digits) {
    if (value === null || value === undefined) { return "-"; }
    return value.toLocaleString("en", { maximumFractionDigits: digits || 0 });
  }

  // Rows of cells; a number's cell is { n: text }. A table that is as before is left alone, so that
  // a button in it keeps the focus.
  function fill(id, rows) {
    var body = byId(id).tBodies[0];
    var key = JSON.stringify(rows.map(function (row) { return row.map(function (cell) { return cell instanceof Node ? cell.textContent : cell; }); }));
    if (body.dataset.key === key) { return; }
    body.dataset.key = key;
    body.replaceChildren.apply(body, rows.map(function (row) {
      return element("tr", {}, row.map(function (cell, index) {
        if (index === 0) { return element("th", { scope: "row" }, cell.n === undefined ? cell : cell.n); }
        return cell.n === undefined ? element("td", {}, cell) : element("td", { "class": "n" }, cell.n);
      }));
    }));
  }

  // The answer to a request, or an error with the server's reason.
  function ask(path, options) {
    return fetch(path, options).then(function (response) {
      return response.json().then(function (json) {
        if (!response.ok) { throw new Error(json.error || response.statusText); }
        return json;
      });
    });
  }

  function problem(text) {
    var place = byId("problem");
    if (place.textContent !== text) { place.textContent = text; }
    place.hidden = !text;
  }

  // Overview

  function lines(rows, name, value, dash) {
    var found = new Map();
    samples.forEach(function (sample) {
      sample[rows].forEach(function (row) {
        var key = name(row);
        if (!found.has(key)) { found.set(key, { x: [], y: [] }); }
        found.get(key).x.push(new Date(sample.time * 1000));
        found.get(key).y.push(value(row));
      });
    });
    return Array.from(found.keys()).sort().map(function (key, index) {
      // Names are the router's; the graph library would read tags in them.
      var label = key.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
      return {
        type: "scatter", mode: "lines", name: label, x: found.get(key).x, y: found.get(key).y,
        line: { color: COLORS[index % COLORS.length], dash: dash || "solid", width: 2 },
      };
    });
  }

  function draw(id, data, unit) { drawOver({ type: "date" }, id, data, unit); }

  function drawSeconds(id, data, unit) { drawOver({ title: { text: "s" }, rangemode: "tozero" }, id, data, unit); }

  function drawOver(xaxis, id, data, unit) {
    var layout = { xaxis: xaxis, yaxis: { title: { text: unit }, rangemode: "tozero", exponentformat: "SI" }, uirevision: 1, showlegend: true };
    layout = themed(layout);
    layout.legend = { orientation: "h", y: -0.2, x: 0 };
    layout.margin = { l: 56, r: 12, t: 8, b: 40 };
    Plotly.react(byId(id), data, layout, { responsive: true, displayModeBar: false });
  }

  function both(rx, tx) {
    var name = function (direction) { return function (row) { return row.name + " " + direction; }; };
    return lines("interfaces", name("rx"), function (row) { return row[rx]; })
      .concat(lines("interfaces", name("tx"), function (row) { return row[tx]; }, "dot"));
  }

  function overview() {
    var router = state.router;
    var last = samples[samples.length - 1] || { interfaces: [], workers: [], errors: [] };
    draw("chart-pps", both("rx_pps", "tx_pps"), "packets/s");
    draw("chart-bps", both("rx_bps", "tx_bps"), "bit/s");
    draw("chart-errors", lines("errors", function (row) { return row.node + ": " + row.reason; }, function (row) { return row.pps; }), "packets/s");
    draw("chart-workers", lines("workers", function (row) { return row.name; }, function (row) { return 100 * row.busy; }), "% of rounds");
    fill("interfaces", router.interfaces.map(function (row) {
      var now = last.interfaces.find(function (other) { return other.name === row.name; }) || {};
      var status = row.absent ? "absent: " + row.absent : row.up ? "up" : "down";
      return [row.name, status].concat([now.rx_pps, now.tx_pps, now.rx_bps, now.tx_bps, row.rx_packets, row.tx_packets, row.drops, row.tx_errors]
        .map(function (value) { return { n: number(value) }; }));
    }));
    fill("errors", router.errors.map(function (row) {
      var now = last.errors.find(function (other) { return other.node === row.node && other.reason === row.reason; }) || {};
      return [row.node, row.reason, row.severity, { n: number(row.count) }, { n: number(now.pps) }];
    }));
    fill("workers", router.workers.map(function (row) {
      var now = last.workers.find(function (other) { return other.name === row.name; }) || {};
      var busy = now.busy === undefined ? "-" : number(100 * now.busy, 1) + " %";
      return [row.name, { n: number(row.cpu) }, { n: busy }, { n: number(row.vector_rate, 1) }];
    }));
    var warnings = router.warnings.length ? router.warnings : ["none"];
    byId("warnings").replaceChildren.apply(byId("warnings"), warnings.map(function (text) { return element("li", {}, text); }));
  }

  // Graph

  // Edges from node to node, those of one pair together; drops of a node lead to "drop".
  function edges(nodes, all) {
    var found = new Map();
    nodes.forEach(function (node) {
      node.edges.forEach(function (edge) {
        if (!all && !edge.packets) { return; }
        (edge.drop ? ["drop"] : edge.next).forEach(function (to) {
          var key = JSON.stringify([node.name, to]);
          var known = found.get(key) || { from: node.name, to: to, names: [], pps: 0, packets: 0, drop: !!edge.drop };
          known.names.push(edge.drop || edge.name);
          known.pps += edge.pps || 0;
          known.packets += edge.packets;
          found.set(key, known);
        });
      });
    });
    return Array.from(found.values());
  }

  // Rows of nodes: each below those that lead to it, as far as the order of the nodes goes.
  function layers(nodes, ways) {
    var rank = new Map();
    var used = new Set();
    ways.forEach(function (way) { used.add(way.from); used.add(way.to); });
    var order = nodes.map(function (node) { return node.name; });
    used.forEach(function (name) { if (order.indexOf(name) < 0) { order.push(name); } });
    order = order.filter(function (name) { return used.has(name); });
    order.forEach(function (name) { rank.set(name, 0); });
    order.forEach(function (name, at) {
      ways.forEach(function (way) {
        if (way.from === name && order.indexOf(way.to) > at) { rank.set(way.to, Math.max(rank.get(way.to), rank.get(name) + 1)); }
      });
    });
    var rows = [];
    order.forEach(function (name) { (rows[rank.get(name)] = rows[rank.get(name)] || []).push(name); });
    return rows.filter(Boolean);
  }

  function svg(name, attributes, text) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text !== undefined) { made.textContent = text; }
    return made;
  }

  function picture(nodes, ways) {
    var WIDTH = 180, HEIGHT = 34, ACROSS = 210, DOWN = 92;
    var rows = layers(nodes, ways);
    var widest = Math.max.apply(null, rows.map(function (row) { return row.length; }).concat(1));
    var place = new Map();
    rows.forEach(function (row, y) {
      row.forEach(function (name, x) { place.set(name, { x: 12 + x * ACROSS + (widest - row.length) * ACROSS / 2, y: 12 + y * DOWN }); });
    });
    var image = svg("svg", { width: widest * ACROSS, height: rows.length * DOWN });
    ways.forEach(function (way) {
      var from = place.get(way.from), to = place.get(way.to);
      var x1 = from.x + WIDTH / 2, y1 = from.y + HEIGHT, x2 = to.x + WIDTH / 2, y2 = to.y;
      var kind = way.drop ? "drop" : way.pps > 0 ? "live" : "";
      image.append(svg("path", { d: "M" + x1 + " " + y1 + "C" + x1 + " " + (y1 + 40) + " " + x2 + " " + (y2 - 40) + " " + x2 + " " + y2, "class": kind }));
    });
    place.forEach(function (at, name) {
      image.append(svg("rect", { x: at.x, y: at.y, width: WIDTH, height: HEIGHT, rx: 4 }));
      image.append(svg("text", { x: at.x + WIDTH / 2, y: at.y + 22, "text-anchor": "middle" }, name));
    });
    ways.forEach(function (way) {
      var from = place.get(way.from), to = place.get(way.to);
      var middle = { x: (from.x + to.x + WIDTH) / 2, y: (from.y + HEIGHT + to.y) / 2 + 4, "class": "rate", "text-anchor": "middle" };
      if (way.packets) { image.append(svg("text", middle, number(way.pps) + "/s")); }
    });
    byId("picture").replaceChildren(image);
  }

  function graph() {
    return ask("/api/v1/graph").then(function (answer) {
      var ways = edges(answer.nodes, byId("all-edges").checked);
      picture(answer.nodes, ways);
      fill("edges", ways.map(function (way) { return [way.from, way.names.join(", "), way.to, { n: number(way.pps) }, { n: number(way.packets) }]; }));
    });
  }

  // Configuration

  function say(text, isBad) {
    var place = byId(shown === "loadtest" ? "test-outcome" : "outcome");
    place.textContent = text;
    place.className = isBad ? "bad" : "";
  }

  function showChanges(changes) {
    byId("changes").hidden = !changes.length;
    fill("changes", changes.map(function (change) {
      var fields = change.fields.map(function (field) {
        var text = function (value) { return value === null ? "-" : String(value); };
        return element("div", {}, field.field + ": " + text(field.before) + " \u2192 " + text(field.after));
      });
      return [String(change.object), change.action, element("div", {}, fields)];
    }));
  }

  function authorized(options) {
    return Object.assign({ headers: { Authorization: "Bearer " + byId("token").value.trim() } }, options);
  }

  function query(values) {
    var given = Object.keys(values).filter(function (key) { return values[key] !== "" && values[key] !== null; });
    return given.length ? "?" + given.map(function (key) { return key + "=" + encodeURIComponent(values[key]); }).join("&") : "";
  }

  // Whether a button does what it is for, and whether a load test runs.
  var busy = false, runs = false;

  // Only what can be done now has a button that works.
  function enableTest() {
    if (busy) { return; }
    byId("start").disabled = runs;
    byId("stop").disabled = !runs;
  }

  // Does what a button is for; its outcome is said, and no button works meanwhile.
  function act(what, work) {
    busy = true;
    var buttons = Array.from(document.querySelectorAll("main button"));
    buttons.forEach(function (button) { button.disabled = true; });
    say(what + " \u2026");
    return work().then(say, function (error) { say(error.message, true); }).then(function () {
      buttons.forEach(function (button) { button.disabled = false; });
      busy = false;
      enableTest();
      return render();
    });
  }

  function seconds() { return byId("confirmed").checked ? byId("seconds").value : null; }

  var WAITS = "; it is taken back unless you confirm it";

  function done(answer) {
    showChanges(answer.changes || []);
    var waits = answer.seconds_left === null ? "" : WAITS;
    return answer.number === null ? "nothing changes: it is in force" : "number " + answer.number + " is in force" + waits;
  }

  function rollback(to) {
    act("rolling back", function () {
      return ask("/api/v1/rollback" + query({ number: to, confirm: seconds() }), authorized({ method: "POST" })).then(done);
    });
  }

  var actions = {
    load: function () {
      act("loading", function () {
        return ask("/api/v1/configuration", authorized()).then(function (answer) {
          byId("yaml").value = answer.yaml;
          return "loaded";
        });
      });
    },
    plan: function () {
      act("planning", function () {
        return ask("/api/v1/plan", { method: "POST", body: byId("yaml").value }).then(function (plan) {
          showChanges(plan.changes);
          var notes = plan.refused.concat(plan.notes);
          return [plan.changes.length ? plan.changes.length + " objects change in " + plan.steps.length + " steps" : "nothing changes"].concat(notes).join("\n");
        });
      });
    },
    apply: function () {
      act("applying", function () {
        var path = "/api/v1/apply" + query({ confirm: seconds(), comment: byId("comment").value });
        return ask(path, authorized({ method: "POST", body: byId("yaml").value })).then(done);
      });
    },
    rollback: function () { rollback(null); },
    confirm: function () {
      act("confirming", function () {
        return ask("/api/v1/confirm", authorized({ method: "POST" })).then(function () { return "confirmed"; });
      });
    },
  };

  function history() {
    return ask("/api/v1/history").then(function (answer) {
      byId("pending").hidden = answer.seconds_left === null;
      if (answer.seconds_left === null && byId("outcome").textContent.endsWith(WAITS)) {
        byId("outcome").textContent = "the change waits no longer: the history says whether it was confirmed or taken back";
      }
      byId("countdown").textContent = answer.seconds_left === null ? "" : "Taken back in " + number(answer.seconds_left) + " s";
      fill("history", answer.configurations.slice().reverse().map(function (entry) {
        var by = entry.who ? entry.who.name || String(entry.who.uid) : "router";
        var look = element("button", { type: "button" }, "Show " + entry.number);
        look.addEventListener("click", function () {
          act("asking", function () {
            return ask("/api/v1/history/" + entry.number).then(function (one) {
              showChanges(one.changes);
              return "number " + entry.number + " changed this";
            });
          });
        });
        var back = element("button", { type: "button" }, "Roll back to " + entry.number);
        back.addEventListener("click", function () { rollback(entry.number); });
        return [{ n: String(entry.number) }, entry.time, entry.why ? entry.state + ": " + entry.why : entry.state, by, entry.comment || "", element("span", {}, [look, " ", back])];
      }));
    }).catch(function (error) { problem(error.message); });
  }

  // Load test

  // Lines of progress of the test that started at `test.started`, as far as they were asked for.
  var test = { started: null, next: 0, samples: [], trials: [] };

  function words(id) { return byId(id).value.split(/\s+/).filter(Boolean); }

  actions.start = function () {
    act("starting", function () {
      var kind = byId("test-kind").value;
      var options = { rate: byId("rate").value.trim(), direction: byId("direction").value, "latency-rate": byId("latency-rate").value.trim() };
      if (kind === "search") {
        options.search = "max-rate";
        options.budget = byId("ramp").value.trim();
      } else {
        options.warmup = byId("warmup").value.trim();
        if (kind === "ramp") { options.ramp = byId("ramp").value.trim(); }
        options[kind === "ramp" ? "hold" : "duration"] = byId("hold").value.trim();
      }
      Object.keys(options).forEach(function (key) { if (!options[key]) { delete options[key]; } });
      var asked = { tx: words("tx"), rx: words("rx"), tunable: words("tunable"), src_mac: words("src-mac"), dst_mac: words("dst-mac"), options: options };
      if (byId("profile").value) { asked.profile = byId("profile").value; } else { asked.profile_text = byId("profile-text").value; }
      var request = authorized({ method: "POST", body: JSON.stringify(asked) });
      request.headers["Content-Type"] = "application/json";
      return ask("/api/v1/loadtest", request).then(function () { return "started"; });
    });
  };

  actions.stop = function () {
    act("stopping", function () {
      return ask("/api/v1/loadtest/stop", authorized({ method: "POST" })).then(function () { return "it is about to end; its result is of the time until now"; });
    });
  };

  function percent(share) { return { n: number(100 * share, 4) + " %" }; }

  function sum(ways, key) { return ways.reduce(function (all, way) { return all + way[key]; }, 0); }

  function drawTest() {
    byId("test-samples").hidden = !test.samples.length;
    byId("test-trials").hidden = !test.trials.length;
    fill("test-trials", test.trials.map(function (trial, index) {
      var offered = trial.flat_out ? "flat out" : number(trial.offered_pps);
      var loss = trial.sent ? Math.max(0, trial.sent - trial.received) / trial.sent : 0;
      return [{ n: String(index + 1) }, { n: offered }, { n: number(trial.sent) }, { n: number(trial.received) }, percent(loss), trial.valid ? "yes" : "no"];
    }));
    if (!test.samples.length) { return; }
    var x = test.samples.map(function (sample) { return sample.at; });
    var line = function (name, index, value) {
      return { type: "scatter", mode: "lines", name: name, x: x, y: test.samples.map(value), line: { color: COLORS[index], width: 2 } };
    };
    var rate = function (key) { return function (sample) { return sum(sample.ways, key); }; };
    drawSeconds("chart-test", [line("sent", 0, rate("tx_pps")), line("came back", 1, rate("rx_pps"))], "packets/s");
    drawSeconds("chart-loss", [line("loss", 1, function (sample) {
      var sent = sum(sample.ways, "tx_pps");
      return sent ? 100 * Math.max(0, sent - sum(sample.ways, "rx_pps")) / sent : 0;
    })], "%");
    // The worst of the directions that measure it.
    var latency = function (key) {
      return function (sample) {
        var known = sample.ways.filter(function (way) { return way.latency; });
        return known.length ? Math.max.apply(null, known.map(function (way) { return way.latency[key] / 1000; })) : null;
      };
    };
    drawSeconds("chart-latency", [line("50 %", 0, latency("p50")), line("99 %", 4, latency("p99")), line("99.9 %", 1, latency("p99_9"))], "\u00b5s");
    fill("test-ways", test.samples[test.samples.length - 1].ways.map(function (way, index) {
      return [{ n: String(index) }, { n: number(way.tx_pps) }, { n: number(way.rx_pps) }, { n: number(way.tx_bps) }, percent(way.loss), { n: number(way.total.sent.packets) }, { n: number(way.total.received.packets) }];
    }));
  }

  function describe(now) {
    if (now.state === "none") { return "No load test so far."; }
    var length = number((now.ended || Date.now() / 1000) - now.started);
    var how = now.state === "running" ? "Running for " : now.exit_code === 0 ? "Ended well after " : now.exit_code === null ? "Ended by a signal after " : "Ended with exit code " + now.exit_code + " after ";
    return how + length + " s: parshall " + now.command.filter(function (word) { return !/^--(json|output|progress)=/.test(word); }).join(" ");
  }

  function loadtest() {
    return ask("/api/v1/loadtest").then(function (now) {
      if (now.started !== test.started) { test = { started: now.started, next: 0, samples: [], trials: [] }; }
      byId("test-state").textContent = describe(now);
      var ended = runs && now.state !== "running";
      runs = now.state === "running";
      if (ended && !busy) { byId("test-outcome").textContent = ""; }
      enableTest();
      byId("test-result").hidden = !now.result;
      byId("test-messages").hidden = !now.messages.length;
      byId("test-messages").textContent = now.messages.join("\n");
      return ask("/api/v1/loadtest/progress?from=" + test.next);
    }).then(function (answer) {
      test.next = answer.from + answer.lines.length;
      answer.lines.forEach(function (line) {
        if (line.ways) { test.samples.push(line); }
        if (line.event === "trial-end") { test.trials.push(line); }
      });
      drawTest();
    });
  }

  // The page

  function show(name) {
    shown = name;
    ["overview", "graph", "configuration", "loadtest"].forEach(function (other) {
      byId(other).hidden = other !== name;
      byId("tab-" + other).setAttribute("aria-selected", String(other === name));
      byId("tab-" + other).tabIndex = other === name ? 0 : -1;
    });
    render();
  }

  function render() {
    if (shown === "loadtest") { return loadtest(); }
    if (!state || !state.router) { return Promise.resolve(); }
    if (shown === "overview") { return Promise.resolve(overview()); }
    return shown === "graph" ? graph() : history();
  }

  function look() {
    var since = samples.length ? samples[samples.length - 1].time : 0;
    return Promise.all([ask("/api/v1/state"), ask("/api/v1/samples?since=" + since)]).then(function (answers) {
      state = answers[0];
      samples = samples.concat(answers[1]).slice(-KEPT);
      problem(state.problem || "");
      byId("version").textContent = state.router ? "version " + state.router.version.version + ", Linux " + state.router.version.kernel : "";
      return render();
    }).catch(function (error) {
      problem("parshall ui does not answer: " + error.message);
    }).then(function () { setTimeout(look, 1000); });
  }

  var tabs = Array.from(document.querySelectorAll("[role=tab]"));
  tabs.forEach(function (tab, index) {
    tab.addEventListener("click", function () { show(tab.getAttribute("aria-controls")); });
    tab.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowLeft: tabs.length - 1 }[event.key];
      if (!step) { return; }
      var next = tabs[(index + step) % tabs.length];
      next.focus();
      next.click();
    });
  });
  Object.keys(actions).forEach(function (id) { byId(id).addEventListener("click", actions[id]); });
  byId("all-edges").addEventListener("change", render);
  look();
})();
