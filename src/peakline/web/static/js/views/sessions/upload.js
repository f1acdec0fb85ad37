/** Files that the reader has become sessions: what they will be called, how far they are. */

import { isAbort, ProblemError } from "../../core/api.js";
import { openDialog } from "../../core/dialog.js";
import { announce, fill, h } from "../../core/dom.js";
import { bytes, percent } from "../../core/format.js";
import { upload } from "../../core/upload.js";
import { freeName, safeName, sessionName } from "./names.js";

/** @typedef {import("../../core/server.js").ServerDocument} ServerDocument */
/**
 * @typedef {object} Place where sessions go
 * @property {(name: string, view: string) => string} link
 * @property {string[]} names those that are taken
 * @property {() => void} onStored
 * @property {AbortSignal} signal
 */

/**
 * @param {ServerDocument} server
 * @param {string} root
 * @param {File[]} files none: the reader chooses
 * @param {Place} place
 */
export function openUpload(server, root, files, place) {
  const ends = new AbortController();
  const choice = h("input", { type: "file", multiple: true, id: "files", "aria-label": "Files" });
  const parts = h("div", { class: "stack" });
  const start = h("button", { type: "submit", class: "primary" }, "Upload");
  const form = h("form", { class: "stack upload" },
    h("p", {}, "A file becomes a session of its own. Its format is found by its content; the server "
      + `takes up to ${bytes(server.max_upload_bytes)}.`),
    h("label", { for: "files" }, "Files"), choice, parts, h("div", { class: "row-of" }, start));
  const dialog = openDialog("Upload", form);
  /** @type {Upload[]} */
  let uploads = [];
  const take = (/** @type {File[]} */ taken) => {
    /** @type {string[]} */
    const names = [...place.names];
    uploads = taken.map((file) => {
      const one = new Upload(file, sessionName(file.name, names), server, root, place);
      names.push(one.name);
      return one;
    });
    fill(parts, ...uploads.map(({ element }) => element));
    start.disabled = !uploads.length;
  };
  choice.addEventListener("change", () => take([...choice.files ?? []]));
  take(files);
  if (files.length) {
    choice.previousElementSibling?.remove();
    choice.remove();
    start.focus();
  } else {
    choice.focus();
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    start.disabled = true;
    choice.disabled = true;
    // One after the other: the server's disk and the line are the same for all.
    for (const one of uploads) await one.send(ends.signal);
    if (ends.signal.aborted) return;
    place.onStored();
    const [only] = uploads;
    if (uploads.length === 1 && only?.stored) {
      dialog.close();
      location.hash = place.link(only.stored, "summary");
      return;
    }
    start.hidden = uploads.every((one) => one.stored);
    start.disabled = false;
    start.textContent = "Try again";
  });
  place.signal.addEventListener("abort", () => dialog.close(), { signal: ends.signal });
  void dialog.closed.then(() => ends.abort());
}

let made = 0;

class Upload {
  stored = "";

  /**
   * @param {File} file
   * @param {string} name
   * @param {ServerDocument} server
   * @param {string} root
   * @param {Place} place
   */
  constructor(file, name, server, root, place) {
    this.file = file;
    this.server = server;
    this.root = root;
    this.place = place;
    const id = `upload-${++made}`;
    this.field = h("input", { type: "text", id, value: name, required: true, autocomplete: "off",
      spellcheck: "false", class: "wide" });
    this.progress = h("progress", { max: file.size || 1, value: 0, hidden: true,
      "aria-label": `Sending ${file.name}` });
    this.outcome = h("p", { class: "outcome" });
    this.element = h("div", { class: "stack file" },
      h("div", {}, h("strong", { class: "name" }, file.name), " ",
        h("span", { class: "quiet" }, bytes(file.size))),
      h("label", { for: id }, "Session name"), this.field, this.progress, this.outcome);
  }

  get name() {
    return this.field.value;
  }

  /** @param {AbortSignal} signal */
  async send(signal) {
    if (this.stored || signal.aborted) return;
    this.field.disabled = true;
    this.progress.hidden = false;
    this.progress.value = 0;
    this.outcome.className = "outcome";
    fill(this.outcome, "Sending …");
    try {
      this.#check();
      const { size } = this.file;
      const document = await upload("uploads", this.file, {
        query: { root: this.root, session_id: this.name.trim(), file_name: safeName(this.file.name) },
        signal,
        progress: (sent) => {
          this.progress.value = Math.min(sent, size);
          this.outcome.textContent = sent < size
            ? `${bytes(sent)} of ${bytes(size)} (${percent(sent / size)})` : "Looking at it …";
        },
      });
      this.stored = document.session_id;
      this.progress.hidden = true;
      fill(this.outcome, "Stored as ",
        h("a", { href: this.place.link(this.stored, "summary") }, this.stored));
      announce(`${this.file.name} is stored`);
    } catch (error) {
      if (isAbort(error)) return;
      this.#failed(error);
    }
  }

  /** What the server would refuse in the middle of the file is said before it is sent. */
  #check() {
    const { size } = this.file, limit = this.server.max_upload_bytes;
    if (size > limit) {
      throw new ProblemError(413, "", `it has ${bytes(size)}; the server takes ${bytes(limit)}`);
    }
    if (!size) throw new ProblemError(415, "", "the file is empty");
    if (this.place.names.includes(this.name.trim())) {
      throw new ProblemError(409, "ALREADY_EXISTS", "there is a session of that name");
    }
  }

  /** @param {unknown} error */
  #failed(error) {
    this.progress.hidden = true;
    this.field.disabled = false;
    const reason = error instanceof Error ? error.message : String(error);
    const status = error instanceof ProblemError ? error.status : -1;
    this.outcome.className = "outcome bad";
    fill(this.outcome, h("span", { role: "alert" }, `${reason}. ${adviceFor(status)}`));
    if (status !== 409) return;
    this.field.value = freeName(this.name.trim(), [...this.place.names, this.name.trim()]);
    this.field.focus();
    this.field.select();
  }
}

/** @param {number} status */
function adviceFor(status) {
  switch (status) {
    case 0: return "Try again; if it stays, look whether peakline serve still runs.";
    case 409: return "Another name is suggested above.";
    case 413: return "Start the server with a larger --max-upload (a gzip file: --max-unpacked).";
    case 415: return "Peakline reads XSpace, RunMetadata, StepStats, memory logs, out-of-memory "
      + "reports, pprof heaps, PyTorch snapshots and traces, and graphs.";
    case 403: return "This server takes no uploads here.";
    default: return "";
  }
}
