/** The version of the original, which extensions compare, and that of this program: `0.87.1+rs.0.1.0`. */
export const VERSION: string;
