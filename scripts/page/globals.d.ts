/** What a browser has that TypeScript's library does not know, and what scripts of others bring. */

interface Window {
  /** Trusted Types, where the browser has them. */
  trustedTypes?: {
    createPolicy(name: string, rules: { createScriptURL?: (url: string) => string }): {
      createScriptURL(url: string): string;
    };
  };
}
