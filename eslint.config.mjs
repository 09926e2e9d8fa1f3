import nx from '@nx/eslint-plugin';
import tseslint from 'typescript-eslint';

/** Which layer may import which (ARCHITECTURE.md, section 3). The test in test/architecture plants violations. */
const layers = [
  { sourceTag: 'layer:core', onlyDependOnLibsWithTags: ['layer:core'] },
  { sourceTag: 'layer:engine', onlyDependOnLibsWithTags: ['layer:core', 'layer:engine'] },
  { sourceTag: 'layer:adapter', onlyDependOnLibsWithTags: ['layer:core', 'layer:engine'] },
  { sourceTag: 'layer:testkit', onlyDependOnLibsWithTags: ['layer:core', 'layer:engine'] },
  { sourceTag: 'layer:app', onlyDependOnLibsWithTags: ['*'] },
];

const impureGlobals = [
  'process', 'Buffer', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'performance', 'crypto',
  'fetch', 'console', 'require', 'globalThis',
].map((name) => ({ name, message: 'core is pure: no clock, no randomness, no I/O. Take it as an argument.' }));

const impureMembers = [
  { object: 'Math', property: 'random' }, { object: 'Date', property: 'now' },
].map((entry) => ({ ...entry, message: 'core is pure: take time and randomness as arguments.' }));

export default tseslint.config(
  { ignores: ['**/dist/**', '**/node_modules/**', '.nx/**', '.tools/**', '.treadle/**'] },
  ...tseslint.configs.recommended,
  {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { '@nx': nx },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'max-lines': ['error', { max: 400 }],
      'max-lines-per-function': ['error', { max: 70, skipComments: true, skipBlankLines: true }],
      'no-restricted-syntax': ['error', { selector: 'ExportAllDeclaration', message: 'Re-export by name: the index is the contract.' }],
      '@nx/enforce-module-boundaries': ['error', { allow: [], depConstraints: layers, banTransitiveDependencies: false }],
    },
  },
  {
    files: ['libs/core/src/**/*.ts'],
    ignores: ['**/*.test.ts'],
    rules: {
      'no-restricted-globals': ['error', ...impureGlobals],
      'no-restricted-properties': ['error', ...impureMembers],
      'no-restricted-imports': ['error', { patterns: [{ regex: '^[^.]', message: 'core imports nothing: no node:*, no npm package, no other lib.' }] }],
      'no-restricted-syntax': ['error',
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'core has no clock.' },
        { selector: 'ExportAllDeclaration', message: 'Re-export by name: the index is the contract.' }],
    },
  },
  {
    files: ['**/*.test.ts', '**/fixtures/**/*.ts', 'test/**/*.ts', 'libs/testkit/**/*.ts'],
    rules: {
      'max-lines-per-function': 'off',
      '@nx/enforce-module-boundaries': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
);
