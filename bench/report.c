#include "bench/report.h"

#include <math.h>

/*  Medians of the rounds; losses are added up, memory is the most there was.  */
typedef struct {
    double median, min, max; /* of the rates */
    sample_t sample;         /* the rest; its rate is the median too */
} summary_t;

static summary_t summarize (const result_t *result)
{
    summary_t self = {.sample = result->samples[0]};
    double values[3 + EXTRAS_MAX][ROUNDS_MAX];
    self.sample.lost = self.sample.wrong = 0;
    for (size_t i = 0; i < result->count; i++) {
        const sample_t *const sample = &result->samples[i];
        values[0][i] = sample->rate;
        values[1][i] = sample->cpu_us;
        for (size_t j = 0; j < EXTRAS_MAX; j++) {
            values[2 + j][i] = sample->extras[j];
        }
        self.sample.lost += sample->lost;
        self.sample.wrong += sample->wrong;
        if (self.sample.peak_bytes < sample->peak_bytes) {
            self.sample.peak_bytes = sample->peak_bytes;
        }
    }
    self.median = self.sample.rate = median_of (values[0], result->count);
    self.min = values[0][0];
    self.max = values[0][result->count - 1];
    self.sample.cpu_us = median_of (values[1], result->count);
    for (size_t j = 0; j < EXTRAS_MAX; j++) {
        self.sample.extras[j] = median_of (values[2 + j], result->count);
    }
    return self;
}

/*  ---- The table ---- */

typedef char figure_t[24];

static const char *rate_text (figure_t text, double rate)
{
    if (rate >= 1e6) {
        snprintf (text, sizeof (figure_t), "%.2f M", rate / 1e6);
    } else if (rate >= 1e4) {
        snprintf (text, sizeof (figure_t), "%.1f k", rate / 1e3);
    } else {
        snprintf (text, sizeof (figure_t), "%.0f", rate);
    }
    return text;
}

/*  The median of Hawser; 0 if it has none.  */
static double hawser_rate (const table_t *table)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->results[i].peer == &peer_hawser && table->results[i].count > 0) {
            return summarize (&table->results[i]).median;
        }
    }
    return 0;
}

static void print_heading (FILE *stream, const workload_t *workload)
{
    fprintf (stream, "\n%s: %s\n", workload->name, workload->title);
    fprintf (stream, "%-15s %9s %9s %9s %7s %9s %8s %9s %7s", "peer", "median/s", "min", "max",
             "MB/s", "hawser is", "lost", "broker us", "MiB");
    for (size_t i = 0; i < EXTRAS_MAX && workload->extras[i].key; i++) {
        fprintf (stream, " %9s", workload->extras[i].heading);
    }
    fputc ('\n', stream);
}

static void print_row (FILE *stream, const workload_t *workload, const result_t *result,
                       double hawser)
{
    if (result->count == 0) {
        fprintf (stream, "%-15s failed\n", result->peer->name);
        return;
    }
    const summary_t summary = summarize (result);
    const sample_t *const sample = &summary.sample;
    figure_t median, min, max;
    fprintf (stream, "%-15s %9s %9s %9s %7.0f", result->peer->name,
             rate_text (median, summary.median), rate_text (min, summary.min),
             rate_text (max, summary.max),
             summary.median * (double) workload->plan.record_bytes / 1e6);
    if (workload->is_rate_given || hawser <= 0 || summary.median <= 0 ||
        result->peer == &peer_hawser) {
        fprintf (stream, " %9s", "");
    } else {
        fprintf (stream, " %7.2f x", hawser / summary.median);
    }
    fprintf (stream, " %8llu", (unsigned long long) sample->lost);
    if (sample->has_server) {
        fprintf (stream, " %9.3f %7.1f", sample->cpu_us, (double) sample->peak_bytes / 1048576);
    } else {
        fprintf (stream, " %9s %7s", "-", "-");
    }
    for (size_t i = 0; i < EXTRAS_MAX && workload->extras[i].key; i++) {
        if (isfinite (sample->extras[i])) {
            fprintf (stream, " %9.1f", sample->extras[i]);
        } else {
            fprintf (stream, " %9s", "-");
        }
    }
    if (sample->wrong > 0) {
        fprintf (stream, "  WRONG: %llu twice, out of order or damaged",
                 (unsigned long long) sample->wrong);
    }
    if (result->failed > 0) {
        fprintf (stream, "  (%u rounds failed)", result->failed);
    }
    fputc ('\n', stream);
}

void report_table (FILE *stream, const table_t *table)
{
    const double hawser = hawser_rate (table);
    print_heading (stream, table->workload);
    for (size_t i = 0; i < table->count; i++) {
        print_row (stream, table->workload, &table->results[i], hawser);
    }
    fflush (stream);
}

/*  ---- results.json ---- */

static void write_result (FILE *file, const workload_t *workload, const result_t *result)
{
    const summary_t summary = summarize (result);
    const sample_t *const sample = &summary.sample;
    fprintf (file, "    \"%s\": {\"median\": %.0f, \"min\": %.0f, \"max\": %.0f, \"lost\": %llu",
             result->peer->name, summary.median, summary.min, summary.max,
             (unsigned long long) sample->lost);
    if (sample->has_server) {
        fprintf (file, ", \"broker_cpu_us_per_record\": %.4f, \"broker_rss_bytes\": %llu",
                 sample->cpu_us, (unsigned long long) sample->peak_bytes);
    } else {
        fputs (", \"broker_cpu_us_per_record\": null, \"broker_rss_bytes\": null", file);
    }
    for (size_t i = 0; i < EXTRAS_MAX && workload->extras[i].key; i++) {
        if (isfinite (sample->extras[i])) {
            fprintf (file, ", \"%s\": %.2f", workload->extras[i].key, sample->extras[i]);
        } else {
            fprintf (file, ", \"%s\": null", workload->extras[i].key);
        }
    }
    fputc ('}', file);
}

int report_json (const char *path, const table_t *tables, size_t count)
{
    FILE *const file = fopen (path, "we");
    if (file == NULL) {
        return peer_fail ("cannot write %s", path);
    }
    fputs ("{", file);
    for (size_t i = 0; i < count; i++) {
        fprintf (file, "%s\n  \"%s\": {", i > 0 ? "," : "", tables[i].workload->name);
        const char *comma = "";
        for (size_t j = 0; j < tables[i].count; j++) {
            if (tables[i].results[j].count > 0) {
                fprintf (file, "%s\n", comma);
                write_result (file, tables[i].workload, &tables[i].results[j]);
                comma = ",";
            }
        }
        fputs ("\n  }", file);
    }
    fputs ("\n}\n", file);
    const int rc = ferror (file);
    return fclose (file) == 0 && rc == 0 ? 0 : peer_fail ("cannot write %s", path);
}
