/** Sending a file, with its progress, which `fetch` does not tell. */

import { ProblemError, json, problemOf, token } from "./api.js";

/**
 * Send a file as it is; the answer's document. Raises ProblemError, or the AbortError of `signal`.
 * @param {string} path under `/api/`
 * @param {Blob} file
 * @param {{query: Record<string, string>, signal: AbortSignal, progress: (sent: number) => void}} how
 * `progress` is told how many bytes have been sent
 * @returns {Promise<any>}
 */
export async function upload(path, file, { query, signal, progress }) {
  // A question first: where a token is wanted it is asked for before the file is sent in vain.
  await json("server", { signal });
  const sending = new XMLHttpRequest();
  const answered = new Promise((resolve, reject) => {
    sending.addEventListener("load", resolve);
    sending.addEventListener("error", () => reject(new ProblemError(0, "UNAVAILABLE",
      "the connection ended before the file was there")));
    sending.addEventListener("abort", () => reject(new DOMException("ended", "AbortError")));
  });
  sending.upload.addEventListener("progress", (event) => progress(event.loaded));
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  sending.open("POST", `api/${path}?${search}`);
  sending.setRequestHeader("Content-Type", "application/octet-stream");
  const shown = token();
  if (shown) sending.setRequestHeader("Authorization", `Bearer ${shown}`);
  const abort = () => sending.abort();
  signal.addEventListener("abort", abort);
  sending.send(file);
  try {
    await answered;
  } finally {
    signal.removeEventListener("abort", abort);
  }
  const response = new Response(sending.responseText, { status: sending.status });
  if (!response.ok) throw await problemOf(response);
  return response.json();
}
