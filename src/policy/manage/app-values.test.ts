// Tests which addresses an app may have: each refused kind would let another party get the app's codes.
import { describe, expect, test } from "bun:test";
import { homepageUrl, redirectUris } from "./app-values.ts";

describe("a redirect address", () => {
  test.each([
    "https://app.example/callback",
    "https://app.example",
    "https://app.example:8443/a/b?x=1&y=%20",
    "https://xn--bcher-kva.example/callback",
    "https://[2001:db8::1]/callback",
    "https://App.Example/Call//Back/../x",
    "http://127.0.0.1/callback",
    "http://127.0.0.1:8910/callback",
    "http://[::1]:8910/callback",
    "http://localhost:3000/",
    "com.example.app:/callback",
    "com.example.app://callback",
  ])("accepts %s as a redirect address and keeps it byte for byte", (uri) => {
    expect(redirectUris([uri])).toEqual([uri]);
  });

  // hardening: A15
  test.each(
    [
      ...["ms-msdt", "smb", "ldap", "itms-services", "content", "chrome-extension", "ms-settings", "search-ms"],
      ...["vscode", "cursor", "steam", "magnet", "web", "web+app", "x-apple.systempreferences", "ms-word.app"],
      ...["javascript", "data", "file", "intent", "tel", "view-source", "wss", "com.", "com..app", "com.-app", "c.app"],
    ].map((scheme) => `${scheme}:/callback`),
  )("rejects %s as a redirect address, as no app owns its scheme", (uri) => {
    expect(() => redirectUris([uri])).toThrow("redirect_uris[0]");
  });

  test.each([
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "cursor://anysphere.cursor-retrieval/oauth/callback",
    "cursor://anysphere.cursor-retrieval/oauth/user-tools/callback",
    "warp://mcp/oauth2callback",
    "vscode://saoudrizwan.claude-dev/mcp-auth/callback/abc123",
    "cursor://saoudrizwan.claude-dev/mcp-auth/callback/abc123",
  ])("accepts %s as the redirect address of a well-known MCP client", (uri) => {
    expect(redirectUris([uri])).toEqual([uri]);
  });

  test.each([
    "cursor://evil/callback",
    "cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=y",
    "cursor://anysphere.cursor-mcp/oauth/../install/callback",
    "cursor://anysphere.cursor-mcp.evil/oauth/callback",
    "vscode://vscode.git/clone?url=https://evil.example/x",
    "vscode://file/etc/passwd",
    "vscode://saoudrizwan.claude-dev/task?prompt=x",
    "warp://action/new_tab?path=/tmp",
  ])("rejects %s as a redirect address, as it makes an editor act", (uri) => {
    expect(() => redirectUris([uri])).toThrow("redirect_uris[0]");
  });

  test.each([
    ["https://app.example/callback#", "fragment"],
    ["https://app.example/#top", "fragment"],
    ["https://*.example/callback", "wildcard"],
    ["https://app.example/*", "wildcard"],
    ["https://user@app.example/", "user name"],
    ["https://user:password@app.example/", "user name"],
    ["https://@app.example/", "user name"],
    ["com.example.app://user@callback", "user name"],
    ["https://bücher.example/", "xn--"],
    ["https://app.example/ä", "percent-encode"],
    ["https://app.example/a b", "blanks"],
    [" https://app.example/", "blanks"],
    ["https://app.example/\n", "blanks"],
    ["https://app.example\\@evil.example/", "percent-encode"],
    ["https://app.example/%zz", "percent-encode"],
    ["https://app.example/\u200bcallback", "percent-encode"],
    ["https:app.example/callback", "host"],
    ["https:/app.example/callback", "host"],
    ["https:///callback", "host"],
    ["https://", "absolute"],
    ["https://app.example:99999/", "absolute"],
    ["HTTPS://app.example/", "lower case"],
    ["/callback", "absolute"],
    ["app.example/callback", "absolute"],
    ["//app.example/callback", "absolute"],
    ["http://app.example/callback", "https://"],
    ["http://127.0.0.2/", "https://"],
    ["http://0x7f.0.0.1/", "https://"],
    ["http://2130706433/", "https://"],
    ["http://localhost.evil.example/", "https://"],
    ["http://LOCALHOST/", "https://"],
    ["http://127.0.0.1.evil.example/", "https://"],
    ["javascript:alert(1)", "https://"],
    ["data:text/html,hello", "https://"],
    ["file:///etc/passwd", "https://"],
    ["vbscript:x", "https://"],
    ["about:blank", "https://"],
    ["blob:https://app.example/1", "https://"],
    ["ftp://app.example/", "https://"],
    ["https://app.example/?code=x", "query"],
    ["https://app.example/?a=b&st%61te=x", "query"],
    ["http://127.0.0.1/?iss=https://evil.example", "query"],
    ["com.example.app:/callback?error", "query"],
    ["myapp://callback", "com.example.app:/callback"],
    ["com.example.app:callback", "com.example.app:/callback"],
  ])("rejects %j as a redirect address", (uri, remedy) => {
    let message = "";
    try {
      redirectUris(["https://app.example/", uri]);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toStartWith("redirect_uris[1]: must ");
    expect(message).toContain(remedy);
  });

  test("rejects a redirect address that is listed twice", () => {
    const [one, other] = ["https://app.example/a", "https://app.example/A"];
    expect(redirectUris([one, other])).toEqual([one, other]);
    expect(() => redirectUris([one, other, one])).toThrow("redirect_uris[2]: is there twice");
  });
});

describe("a home page", () => {
  test("accepts an https address or none as a home page", () => {
    expect(homepageUrl("https://app.example/about?a=1")).toBe("https://app.example/about?a=1");
    expect(homepageUrl(null)).toBeNull();
  });

  test.each([
    "http://app.example/",
    "http://localhost/",
    "javascript:alert(1)",
    "com.example.app:/page",
    "https://user@app.example/",
    "https:///page",
    "app.example",
    "https://app.example/ä",
  ])("rejects %s as a home page", (url) => {
    expect(() => homepageUrl(url)).toThrow("homepage_url: must ");
  });
});
