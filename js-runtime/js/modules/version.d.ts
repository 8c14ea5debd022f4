/** The version of the original that extensions compare, and this program's: `0.87.1+rs.0.1.0`. */
export const VERSION: string;
