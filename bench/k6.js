// The k6 row of run.sh: one request per iteration.
import http from 'k6/http';

export default function () {
  http.get(__ENV.URL);
}
