/* The search: Material's own worker, started when somebody searches, and asked better.

   A page loads only this file. Material's worker and the sections of all pages come
   with the first word that somebody types. Four things differ from Material:
   - a word is found by itself and by its stem, so that "beams" finds "beam", and
     "quantization" finds "quantisation";
   - "why", "how" and "before" count; only the commonest words do not;
   - a word that no page has is looked for with one letter changed;
   - below each page its best section stands unfolded, and Enter leads there: see `led`. */
const [SETUP, READY, QUERY, RESULT] = [0, 1, 2, 3] // Material's kinds of messages
const COMMON = new Set(
  "a an and are as at be by do does for i in is it its of on or that the this to what"
    .split(" "),
)
const worker = new URL(location).searchParams.get("worker")

const known = new Set() // all words of the site, as they are written
let settings, loading
let query = "" // that is answered, or will be
let words = [] // of it, without the common ones
const page = new BroadcastChannel("search") // see search.js

addEventListener("message", (event) => {
  if (!event.isTrusted) return // handed on below: for Material's worker
  event.stopImmediatePropagation()
  const { type, data } = event.data
  if (type === SETUP) {
    settings = data
    postMessage({ type: READY })
  } else if (data.trim()) {
    query = data
    loading ??= load()
    loading.then(() => query === data && hand(QUERY, asked(data)), failed)
  } else postMessage({ type: RESULT, data: { items: [] } })
})

const hand = (type, data) =>
  dispatchEvent(new MessageEvent("message", { data: { type, data } }))

/* What is typed next tries again; search.js tells the reader. */
function failed() {
  loading = undefined
  page.postMessage({ failed: true })
}

async function load() {
  const response = await fetch("../../search/sections.json")
  if (!response.ok) throw new Error(`${response.url}: ${response.status}`)
  const docs = await response.json()
  importScripts(`../javascripts/workers/search.${worker}`)

  const { stemmer } = lunr
  /* American spelling is found by British, and the other way round. */
  const stemOf = (token) => stemmer(token.clone()).update((stem) => stem.replace(/iz$/, "is"))
  let reading = true // lunr asks for stems of the sections first, then of each query
  const withStem = (token) => {
    if (reading) known.add(`${token}`)
    const stem = stemOf(token)
    return `${stem}` === `${token}` ? token : [token, stem]
  }
  const common = (token) => (COMMON.has(`${token}`) ? undefined : token)
  lunr.Pipeline.registerFunction(withStem, "withStem")
  lunr.Pipeline.registerFunction(common, "common")
  Object.assign(lunr, { stemmer: withStem, stopWordFilter: common, stem: stemOf })

  const { search } = lunr.Index.prototype
  lunr.Index.prototype.search = function (...given) {
    const found = search.apply(this, given)
    for (const { matchData } of found) markOnce(matchData.metadata)
    return found
  }

  const { postMessage: tell } = self
  const indexed = new Promise((done) => {
    self.postMessage = ({ type, data }) => {
      if (type === READY) return done()
      /* Words are suggested, not their stems. */
      if (data.suggest) data.suggest = data.suggest.filter((word) => known.has(word))
      tell.call(self, { type, data: { ...data, items: led(data.items) } })
      page.postMessage({ answered: query })
    }
  })
  hand(SETUP, { ...settings, docs })
  await indexed
  reading = false
}

/* A word that is found by itself and by its stem is one mark, not one inside another. */
function markOnce(metadata) {
  const marked = {}
  for (const fields of Object.values(metadata))
    for (const [field, found] of Object.entries(fields)) {
      const seen = (marked[field] ??= new Set())
      found.position = found.position?.filter((at) => !seen.has(at) && seen.add(at)) ?? []
    }
}

const separator = () => new RegExp(settings.config.separator)
const stem = (word) => `${lunr.stem(new lunr.Token(word))}`

/* A query as lunr's language has it. What already speaks this language stays. */
function asked(text) {
  const typed = text.trim().split(separator()).map((word) => word?.toLowerCase())
  words = typed.filter((word) => word && !COMMON.has(word))
  if (/["~^*:]|(^|\s)[+-]/.test(text)) return text
  const ended = /\s$/.test(text)
  return words
    .map((word, n) => clause(word, n === words.length - 1 && !ended))
    .join(" ")
}

function clause(word, unfinished) {
  const root = stem(word)
  if (known.has(word)) {
    const whole = `${root}^2`
    return unfinished && root === word ? `${whole} ${word}*` : whole
  }
  const begun = [...known].some((other) => other.startsWith(word))
  if (begun) return `${word}*`
  return word.length > 4 ? `${word}~1` : `${root}^1`
}

/* Sections that every chapter has: they speak of all that is in it. */
const SHARED =
  /#(the-question|in-a-config|exercises|interview-questions|checklist|references|paper-textbook-code)$/

/* Order the pages, and what stands below each. Material shows unfolded what scores most,
   and Enter opens what scores most of all: the best section, or the page, if its title
   has all that was asked for. */
function led(pages) {
  return pages
    .map((entries) => {
      const rated = entries.map((entry) => ({
        ...entry,
        score: rate(entry),
        terms: inWords(entry.terms),
      }))
      const whole = rated.find((entry) => !entry.parent)
      const sections = rated.filter((entry) => entry.parent).sort(byScore)
      const [best, ...others] = sections
      if (!best) return rated
      const score = whole.score + best.score
      const asksForPage = named(whole)
      const least = Math.min(score / 2, ...others.map((entry) => entry.score))
      const leads = [
        { ...best, score },
        { ...whole, score: asksForPage ? score : score / 2 },
      ]
      if (asksForPage) leads.reverse()
      return [...leads, ...others.map((entry) => ({ ...entry, score: least / 2 }))]
    })
    .sort(([one], [other]) => byScore(one, other))
}

const byScore = (one, other) => other.score - one.score

/* Material multiplies by how many of the words are found, and far more for a page than
   for a section; here the words count alike. */
function rate({ score, terms, parent, location }) {
  const found = Object.values(terms)
  const share = found.length ? found.filter(Boolean).length / found.length : 0
  const plain = score / (1 + (Number(!parent) + share) ** 2)
  return plain * (0.1 + share ** 2) * (SHARED.test(location) ? 0.5 : 1)
}

/* What was found, by words that a reader knows and a page marks: neither the stem "cach"
   nor the beginning "siz*". */
function inWords(terms) {
  const found = {}
  for (const word of words) {
    const root = stem(word)
    const forms = [word, root, `${word}*`, `${root}*`].filter((form) => form in terms)
    const whole = known.has(root) ? root : word
    if (forms.length) found[whole] = forms.some((form) => terms[form])
  }
  return Object.keys(found).length ? found : terms
}

function named({ title }) {
  const plain = title.replace(/<[^>]*>/g, "").toLowerCase()
  const stems = new Set(plain.split(separator()).map(stem))
  return words.every((word) => stems.has(stem(word)))
}
