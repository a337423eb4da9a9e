// A graph's layout in the fonts and colours of the page.
function themed(layout) {
  "use strict";
  var style = getComputedStyle(document.documentElement);
  var color = function (name) { return style.getPropertyValue(name).trim(); };
  var result = JSON.parse(JSON.stringify(layout));
  result.paper_bgcolor = result.plot_bgcolor = "rgba(0,0,0,0)";
  result.font = { color: color("--text"), family: "system-ui, sans-serif", size: 13 };
  result.margin = { l: 64, r: 40, t: 16, b: 56 };
  result.legend = { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 };
  result.modebar = { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: color("--soft"), activecolor: color("--accent") };
  result.hoverlabel = { bgcolor: color("--raised"), bordercolor: color("--rule"), font: { color: color("--text") } };
  ["xaxis", "yaxis", "yaxis2"].forEach(function (axis) {
    if (result[axis]) {
      result[axis].gridcolor = color("--rule");
      result[axis].zerolinecolor = color("--soft");
      result[axis].automargin = true;
    }
  });
  return result;
}
