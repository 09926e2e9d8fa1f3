/**
 * How node is started for a process of the product: by `treadle up`, and, in the same words, by `./treadle`. Event streams and turns are
 * short-lived text: with node's default of three times 32 MB for young objects they make a process grow by some 100 MB before anything
 * is collected, and it is no quicker for that.
 * And a `treadle.config.ts` in a folder whose package.json says nothing of modules, or that has none, is no reason to warn: each process
 * would do so, of a file that is read once.
 */
export const nodeFlags = ['--max-semi-space-size=16', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'] as const;
