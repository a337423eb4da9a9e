(function () {
  "use strict";
  var charts = JSON.parse(document.getElementById("charts").textContent);
  var dark = window.matchMedia("(prefers-color-scheme: dark)");

  function draw() {
    charts.forEach(function (chart) {
      var place = document.getElementById(chart.id);
      Plotly.react(place, chart.data, themed(chart.layout), { responsive: true, displaylogo: false });
    });
  }

  draw();
  dark.addEventListener("change", draw);
})();
