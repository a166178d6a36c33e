// The page Apps.
import { Page } from "../../parts/page.tsx";

export function AppsPage() {
  return <Page title="Apps">{null}</Page>;
}
