// The page that webpack bundles.
import { open } from 'sluice-llm';
import { stream } from './stream.js';

stream(open);
