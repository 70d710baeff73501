/** The TypeScript of the README compiles as a strict app's would. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const snippets = new Map(
  [...readFileSync(resolve(root, 'README.md'), 'utf8').matchAll(/<!-- snippet: (\S+\.ts) -->\n```ts\n(.*?)```/gs)].map(
    ([, name = '', code = '']) => [resolve(root, 'guest-js', `readme-${name}`), code],
  ),
);

test('every TypeScript snippet of the README compiles', { timeout: 60_000 }, () => {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.asynciterable.d.ts', 'lib.esnext.disposable.d.ts'],
    types: [],
    strict: true,
    noUncheckedIndexedAccess: true,
    noUnusedLocals: true,
    skipLibCheck: true,
    noEmit: true,
    paths: {
      'tauri-plugin-youyou-agent-api': [resolve(root, 'guest-js/index.ts')],
      'tauri-plugin-youyou-agent-api/*': [resolve(root, 'guest-js/*.ts')],
    },
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (file) => snippets.has(file) || fileExists(file);
  host.getSourceFile = (file, language, ...rest) => {
    const code = snippets.get(file);
    return code === undefined ? getSourceFile(file, language, ...rest) : ts.createSourceFile(file, code, language);
  };
  const program = ts.createProgram([...snippets.keys()], options, host);
  const said = ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  expect([snippets.size > 0, said]).toEqual([true, []]);
});
