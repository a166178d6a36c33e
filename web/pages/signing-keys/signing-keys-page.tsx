// The page SigningKeys.
import { Page } from "../../parts/page.tsx";

export function SigningKeysPage() {
  return <Page title="SigningKeys">{null}</Page>;
}
