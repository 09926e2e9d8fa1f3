/** Many pieces of work for the store, without asking all of it at once. */
const atOnce = 16;

/** A few at once; after the first failure none is begun any more, and it is thrown when those under way have ended. */
export async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const failures: unknown[] = [];
  const hand = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined && failures.length === 0; item = left.shift()) await work(item).catch((error: unknown) => { failures.push(error); });
  };
  await Promise.all(Array.from({ length: atOnce }, hand));
  if (failures.length > 0) throw failures[0] instanceof Error ? failures[0] : new Error(String(failures[0]));
}
