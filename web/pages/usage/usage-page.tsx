// The page Usage.
import { Page } from "../../parts/page.tsx";

export function UsagePage() {
  return <Page title="Usage">{null}</Page>;
}
