
(function () {
  "use strict";
  var box = document.getElementById("filter");
  if (!box) { return; }
  var text = document.getElementById("text");
  var verdict = document.getElementById("verdict");
  var told = document.getElementById("told");
  var rows = Array.prototype.slice.call(document.querySelectorAll("#hosts tbody tr"));
  var words = rows.map(function (row) { return row.textContent.toLowerCase(); });
  function show() {
    var wanted = text.value.trim().toLowerCase();
    var shown = 0;
    rows.forEach(function (row, at) {
      var fits = (!verdict.value || row.dataset.verdict === verdict.value) &&
        (!wanted || words[at].indexOf(wanted) !== -1);
      row.hidden = !fits;
      if (fits) { shown += 1; }
    });
    told.textContent = shown + " of " + rows.length + " shown";
  }
  text.addEventListener("input", show);
  verdict.addEventListener("change", show);
  box.hidden = false;
  show();
}());
