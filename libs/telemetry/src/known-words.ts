/** Words of other people's code that become a label: so many are taken as they are, and the rest is `other`. */
export interface KnownWords { known(word: string): string }

const mostWords = 50;

export function createKnownWords(): KnownWords {
  const words = new Set<string>();
  return {
    known: (word) => {
      if (words.size < mostWords) words.add(word);
      return words.has(word) ? word : 'other';
    },
  };
}
