// The page Requests.
import { Page } from "../../parts/page.tsx";

export function RequestsPage() {
  return <Page title="Requests">{null}</Page>;
}
