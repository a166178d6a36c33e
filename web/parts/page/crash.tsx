// An error boundary: if a page crashes, the rest of the dashboard keeps working.
import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Empty } from "./empty.tsx";
import { Page } from "./page.tsx";

export class Crash extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <Page title="This page failed">
        <Empty
          title="This page could not be displayed"
          action={<Button onClick={() => window.location.reload()}>Reload the page</Button>}
        >
          The dashboard may be older than the server, the connection may have been lost, or the page has a fault. In
          most cases, loading the page again helps.
        </Empty>
      </Page>
    );
  }
}
