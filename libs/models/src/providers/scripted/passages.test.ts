import { describe, expect, it } from 'vitest';
import { keywords } from './keywords.ts';
import { bestPassage } from './passages.ts';

describe('the best passage', () => {
  it('takes along what it announces', () => {
    const content = '# Deploy\n\nTo deploy, run:\n\n```sh\nmake ship\n```\n\nThen rest.';
    expect(bestPassage('How do I deploy?', [{ path: 'a.md', content }])?.text).toBe('To deploy, run:\n\n```sh\nmake ship\n```');
  });

  it('prefers rare words to common ones, and the words themselves to those of the heading', () => {
    const files = [
      { path: 'a.md', content: '# Holiday\n\nAbout days.\n\nMore days.\n\nDays again.' },
      { path: 'b.md', content: '# Misc\n\nA sabbatical may be asked for.' },
    ];
    expect(bestPassage('days sabbatical', files)?.path).toBe('b.md');
    expect(bestPassage('holiday days', files)?.text).toBe('About days.');
  });

  it('is none where no word fits', () => {
    expect(bestPassage('zebra', [{ path: 'a.md', content: '# A\n\n---\n\nLion.' }])).toBeNull();
    expect(bestPassage('the of and', [{ path: 'a.md', content: 'The lion.' }])).toBeNull();
    expect(bestPassage('zebra', [])).toBeNull();
  });
});

describe('keywords', () => {
  it('are the words that say something, without their endings, in any script', () => {
    expect(keywords('How are retries retried by the workers?')).toEqual(['retry', 'retri', 'worker']);
    expect(keywords('Где документы? 현재')).toEqual(['где', 'документы', '현재']);
  });
});
