"""How long the engine takes, and how much it asks for.

The bars: 11 tokens in 30 ms, ready in a second at 10 Mbit/s, 25 MB of memory. What is
measured is the processor's time, which other work on the machine changes a little;
there is room for that.
"""

import gzip

from live_serving import DOCS
from tformer.pretrained import load_pretrained

TEXT = "Donnerstag, 3. Mai 1979"
WRITE = """async ([text, times]) => {
  const { Transformer } = await import('/live/engine/transformer.js');
  const { greedy } = await import('/live/engine/generate.js');
  window.model ??= await Transformer.load('/live/models/dates-as-typed');
  const source = model.vocabulary.encode(text, { eos: true });
  for (let i = 0; i < times; i++) window.result = greedy(model, source);
  return window.result.ids.length;
}"""


def test_a_date_takes_less_than_the_eye_sees_and_little_memory(live_page):
    page = live_page(fresh=True)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def megabytes() -> float:  # the heap and the arrays beside it
        session.send("HeapProfiler.collectGarbage")
        now = session.send("Runtime.getHeapUsage")
        return (now["usedSize"] + now["backingStorageSize"]) / 1e6

    def milliseconds() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        used = next(x["value"] for x in metrics if x["name"] == "TaskDuration")
        return 1000 * used

    before = megabytes()
    assert page.evaluate(WRITE, [TEXT, 10]) == 11  # then the code has been compiled
    assert 1 < megabytes() - before < 25  # the weights alone are 1 MB
    before = milliseconds()
    page.evaluate(WRITE, [TEXT, 20])
    assert 1 < (milliseconds() - before) / 20 < 60


def test_what_is_fetched():
    """At 10 Mbit/s a second is 1.25 MB: the engine and the model are half of it."""
    files = (DOCS / "live/engine").glob("*.js")
    assert sum(len(gzip.compress(x.read_bytes())) for x in files) < 25_000
    assert load_pretrained("dates-as-typed").manifest["bytes"] < 600_000
