/** Words of other people's code or servers that become a label: so many are taken as they are, and the rest is `other`. */
export interface KnownWords { known(word: string): string }

export function createKnownWords(most: number): KnownWords {
  const words = new Set<string>();
  return {
    known: (word) => {
      if (words.size < most) words.add(word);
      return words.has(word) ? word : 'other';
    },
  };
}
