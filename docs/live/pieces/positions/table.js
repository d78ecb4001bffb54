// The table of positions in double precision, as the package computes it.

/**
 * The speed of clock i: radians that it turns from one position to the next.
 * @param {number} i
 * @param {number} width d_model
 */
export function speed(i, width) {
  return 10000 ** ((-2 * i) / width);
}

/**
 * A row of the table: sine and cosine of each clock.
 * @param {number} position
 * @param {number} width d_model
 */
export function tableRow(position, width) {
  return Array.from({ length: width }, (_, column) => {
    const angle = position * speed(column >> 1, width);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}
