// The page Upstreams.
import { Page } from "../../parts/page.tsx";

export function UpstreamsPage() {
  return <Page title="Upstreams">{null}</Page>;
}
