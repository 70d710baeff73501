// tsc writes ES modules and their types into dist-js; this adds what CommonJS users need:
// each module once more as .cjs, and its types as .d.cts.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const OUT = 'dist-js';

/** Types of the CommonJS modules: the same declarations, importing each other by their .cjs names. */
function commonJsTypes() {
  return {
    name: 'common-js-types',
    generateBundle() {
      for (const file of readdirSync(OUT, { recursive: true })) {
        if (!file.endsWith('.d.ts')) continue;
        const source = readFileSync(join(OUT, file), 'utf8').replace(/(['"]\.[^'"]*)\.js(['"])/g, '$1.cjs$2');
        this.emitFile({ type: 'asset', fileName: file.replace(/\.d\.ts$/, '.d.cts'), source });
      }
    },
  };
}

export default {
  input: ['index', 'ai-sdk', 'testing'].map((name) => `${OUT}/${name}.js`),
  external: (id) => !id.startsWith('.') && !id.startsWith('/'),
  output: {
    dir: OUT,
    format: 'cjs',
    preserveModules: true,
    entryFileNames: '[name].cjs',
  },
  plugins: [commonJsTypes()],
};
