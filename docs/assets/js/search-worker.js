/* The search: Material's own worker, started when somebody searches, and asked better.

   A page loads only this file. Material's worker and the sections of all pages come
   with the first word that somebody types. Three things differ from Material:
   - a word is found by itself and by its stem, so that "beams" finds "beam";
   - "why", "how" and "before" count; only the commonest words do not;
   - a word that no page has is looked for with one letter changed. */
const [SETUP, READY, QUERY, RESULT] = [0, 1, 2, 3] // Material's kinds of messages
const COMMON = new Set(
  "a an and are as at be by do does for i in is it its of on or that the this to".split(" "),
)
const worker = new URL(location).searchParams.get("worker")

const known = new Set() // all words of the site, as they are written
let settings, loading

addEventListener("message", (event) => {
  if (!event.isTrusted) return // handed on below: for Material's worker
  event.stopImmediatePropagation()
  const { type, data } = event.data
  if (type === SETUP) {
    settings = data
    postMessage({ type: READY })
  } else if (data.trim()) {
    loading ??= load()
    loading.then(() => hand(QUERY, asked(data)))
  } else postMessage({ type: RESULT, data: { items: [] } })
})

const hand = (type, data) =>
  dispatchEvent(new MessageEvent("message", { data: { type, data } }))

async function load() {
  const response = await fetch("../../search/sections.json")
  const docs = await response.json()
  importScripts(`../javascripts/workers/search.${worker}`)

  const { stemmer } = lunr
  let reading = true // lunr asks for stems of the sections first, then of each query
  const withStem = (token) => {
    if (reading) known.add(`${token}`)
    const stem = stemmer(token.clone())
    return `${stem}` === `${token}` ? token : [token, stem]
  }
  const common = (token) => (COMMON.has(`${token}`) ? undefined : token)
  lunr.Pipeline.registerFunction(withStem, "withStem")
  lunr.Pipeline.registerFunction(common, "common")
  Object.assign(lunr, { stemmer: withStem, stopWordFilter: common, stem: stemmer })

  const { postMessage: tell } = self
  const indexed = new Promise((done) => {
    self.postMessage = ({ type, data }) => {
      if (type === READY) return done()
      /* Words are suggested, not their stems. */
      if (data.suggest) data.suggest = data.suggest.filter((word) => known.has(word))
      tell.call(self, { type, data })
    }
  })
  hand(SETUP, { ...settings, docs })
  await indexed
  reading = false
}

/* A query as lunr's language has it. What already speaks this language stays. */
function asked(text) {
  if (/["~^*:]|(^|\s)[+-]/.test(text)) return text
  const separator = new RegExp(settings.config.separator)
  const words = text.trim().split(separator).map((word) => word?.toLowerCase())
  const telling = words.filter((word) => word && !COMMON.has(word))
  const ended = /\s$/.test(text)
  return telling
    .map((word, n) => clause(word, n === telling.length - 1 && !ended))
    .join(" ")
}

function clause(word, unfinished) {
  const stem = `${lunr.stem(new lunr.Token(word))}`
  if (known.has(word)) {
    const whole = `${stem}^2`
    return unfinished && stem === word ? `${whole} ${word}*` : whole
  }
  const begun = [...known].some((other) => other.startsWith(word))
  if (begun) return `${word}*`
  return word.length > 4 ? `${word}~1` : `${stem}^1`
}
