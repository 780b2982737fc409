// Where things are in a clone: every path the scripts share, relative to the repository's root.
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const modelsDir = path.join(root, 'models');
export const pkgDir = path.join(root, 'pkg');
/** The package's modules one by one, of which the files of pkg/ are made. */
export const modulesDir = path.join(root, 'target/js');
export const siteDir = path.join(root, 'dist');
export const toolsDir = path.join(root, '.tools');

/** Cargo's target directory for native builds, as the caller set it or cargo's default. */
export const targetDir = path.resolve(root, process.env['CARGO_TARGET_DIR'] ?? 'target');

/** An npm package's executable, run by Node: `node(bin('typescript', 'bin/tsc'), …)`. */
export const bin = (name, file) => path.join(root, 'node_modules', name, file);
