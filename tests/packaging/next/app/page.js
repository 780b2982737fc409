// The one page.
import { Answer } from './answer';

export default function Page() {
  return <Answer />;
}
