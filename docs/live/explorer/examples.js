// Dates that are one tap away. The first is the book's; the days of the others are of the
// test, which the model has not seen in training in any language.

/** @type {readonly {text: string, language: string}[]} */
export const EXAMPLES = [
  { text: "jeudi 3 mai 1979", language: "fr" },
  { text: "August 4, 2024", language: "en" },
  { text: "Montag, 3. November 2003", language: "de" },
  { text: "1974年2月3日", language: "ja" },
  { text: "25 Απριλίου 1914", language: "el" },
  { text: "20 tháng 5, 2037", language: "vi" },
];
