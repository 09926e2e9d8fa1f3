import { createMemoryKeyDirectory } from '../doubles/key-directory.ts';
import { keyDirectoryConformance } from './key-directory.ts';

keyDirectoryConformance('in memory', () => createMemoryKeyDirectory(() => 1_700_000_000_000));
