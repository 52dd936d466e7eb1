// ---- sound: the microphone, files, and what the server makes of them

const SOUND_RATE = 16000;            // samples per second of what is sent
const MOST_AS_IT_IS = 4 * 1000 * 1000;  // bytes of a WAV or FLAC file that is sent as it is
const MICROPHONE_PROBLEMS = {
  NotAllowedError: "The browser does not let this page use the microphone: see the site's settings " +
      "in the address bar.",
  NotFoundError: "There is no microphone.",
  NotReadableError: "The microphone cannot be read: does another program use it?"};

// Says why the browser gives this page no microphone; "" if it may.
function whyNoMicrophone() {
  if (!isSecureContext) {
    return "The browser gives the microphone only to pages that come over https or from " +
        "localhost, and this one came from " + location.origin + ". Files can be chosen.";
  }
  return navigator.mediaDevices ? "" : "This browser has no microphone for pages.";
}

// Begins to record. Throws what keeps the browser from it.
async function record() {
  if (whyNoMicrophone()) throw new Error(whyNoMicrophone());
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({audio: true});
  } catch (error) {
    throw new Error(MICROPHONE_PROBLEMS[error.name] || error.message);
  }
  const recorder = new MediaRecorder(stream);
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  const ended = new Promise((end) => { recorder.onstop = end; });  // also by an unplugged one
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(stream).connect(analyser);
  const heard = new Float32Array(analyser.fftSize);
  const start = performance.now();
  recorder.start();
  return {
    seconds: () => (performance.now() - start) / 1000,
    // The loudest of the last milliseconds, up to 1.
    level() {
      analyser.getFloatTimeDomainData(heard);
      return heard.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    },
    // Ends, and returns a file in a format of the browser's.
    async stop(name) {
      if (recorder.state !== "inactive") recorder.stop();
      await ended;
      for (const track of stream.getTracks()) track.stop();
      context.close();
      return new File(parts, name, {type: recorder.mimeType});
    }};
}

// Returns a WAV file of 16 bits and one channel.
function wavOf(samples) {
  const bytes = 2 * samples.length;
  const view = new DataView(new ArrayBuffer(44 + bytes));
  const text = (at, value) => {
    for (let i = 0; i < value.length; ++i) view.setUint8(at + i, value.charCodeAt(i));
  };
  text(0, "RIFF");
  view.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);  // bytes of what follows, up to "data"
  view.setUint16(20, 1, true);   // PCM
  view.setUint16(22, 1, true);   // channel
  view.setUint32(24, SOUND_RATE, true);
  view.setUint32(28, 2 * SOUND_RATE, true);
  view.setUint16(32, 2, true);   // bytes of a sample
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, bytes, true);
  samples.forEach((sample, i) => {
    const value = Math.max(-1, Math.min(32767 / 32768, sample));
    view.setInt16(44 + 2 * i, Math.round(32768 * value), true);
  });
  return new Blob([view], {type: "audio/wav"});
}

// Returns what the server reads: a WAV or FLAC file as it is, unless it is large, and anything else
// that the browser plays as a WAV file of the model's rate.
async function soundOf(file) {
  const head = new TextDecoder("latin1").decode(await file.slice(0, 4).arrayBuffer());
  const isRead = head === "RIFF" || head === "fLaC";
  if (isRead && file.size <= MOST_AS_IT_IS) return file;
  let sound;
  try {
    const context = new OfflineAudioContext(1, 1, SOUND_RATE);
    sound = await context.decodeAudioData(await file.arrayBuffer());
  } catch (error) {
    if (isRead) return file;  // the server says what is wrong with it
    throw new Error(file.name + " has no sound that the browser reads");
  }
  const mono = sound.getChannelData(0);
  for (let c = 1; c < sound.numberOfChannels; ++c) {
    sound.getChannelData(c).forEach((sample, i) => { mono[i] += sample; });
  }
  return wavOf(mono.map((sample) => sample / sound.numberOfChannels));
}

// Yields the events of a transcription: segments as they are written, and the whole.
function transcribe(sound, language, translates, signal) {
  const form = new FormData();
  form.append("file", sound, "sound");
  form.append("response_format", "verbose_json");
  form.append("stream", "true");
  if (language && !translates) form.append("language", language);
  return ask("v1/audio/" + (translates ? "translations" : "transcriptions"), form, null, signal);
}

function languageName(code) {
  try { return new Intl.DisplayNames("en", {type: "language"}).of(code); } catch (e) { return code; }
}

// The select keeps what is chosen: its options are made once.
function offerLanguages(select, codes) {
  select.closest("label").classList.toggle("hidden", !codes.length);
  if (select.options.length) return;
  const named = codes.map((code) => new Option(languageName(code), code));
  named.sort((a, b) => a.text.localeCompare(b.text));
  select.replaceChildren(new Option("Detect", ""), ...named);
}
