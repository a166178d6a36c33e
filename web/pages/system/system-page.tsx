// The page System.
import { Page } from "../../parts/page.tsx";

export function SystemPage() {
  return <Page title="System">{null}</Page>;
}
