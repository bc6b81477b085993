// Ten steps with cloud.google.com/go/bigquery.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/civil"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
)

type inner struct{ K string }

type item struct {
	N     int64
	S     string
	F     bigquery.NullFloat64
	Day   civil.Date
	At    time.Time
	Items []inner
}

var (
	ctx     = context.Background()
	day     = civil.Date{Year: 2022, Month: 9, Day: 29}
	at      = time.Date(2022, 9, 29, 10, 0, 0, 0, time.UTC)
	client  *bigquery.Client
	dataset *bigquery.Dataset
	table   *bigquery.Table
)

func query(sql string, parameters ...bigquery.QueryParameter) ([][]bigquery.Value, error) {
	q := client.Query(sql)
	q.Parameters = parameters
	q.DefaultDatasetID = dataset.DatasetID
	rows, err := q.Read(ctx)
	if err != nil {
		return nil, err
	}
	var found [][]bigquery.Value
	for {
		var row []bigquery.Value
		err := rows.Next(&row)
		if err == iterator.Done {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		found = append(found, row)
	}
}

func want(found [][]bigquery.Value, err error, text string) error {
	if err == nil && fmt.Sprint(found) != text {
		return fmt.Errorf("found %v, not %s", found, text)
	}
	return err
}

func wait(job *bigquery.Job, err error) error {
	if err != nil {
		return err
	}
	status, err := job.Wait(ctx)
	if err != nil {
		return err
	}
	return status.Err()
}

func createTable() error {
	schema, err := bigquery.InferSchema(item{})
	if err != nil {
		return err
	}
	return table.Create(ctx, &bigquery.TableMetadata{
		Schema:           schema,
		TimePartitioning: &bigquery.TimePartitioning{Field: "Day"},
		Labels:           map[string]string{"a": "b"},
	})
}

func metadata() error {
	found, err := table.Metadata(ctx)
	if err != nil {
		return err
	}
	if len(found.Schema) != 6 || found.TimePartitioning.Field != "Day" || found.Labels["a"] != "b" {
		return fmt.Errorf("metadata: %+v", found)
	}
	_, err = table.Update(ctx, bigquery.TableMetadataToUpdate{Description: "d"}, found.ETag)
	return err
}

func insert() error {
	return table.Inserter().Put(ctx, []*item{{N: 1, S: "a", Day: day, At: at, Items: []inner{{"x"}}}})
}

func load() error {
	source := bigquery.NewReaderSource(strings.NewReader(
		`{"N": 2, "S": "b", "F": 1.5, "Day": "2022-09-30", "At": "2022-09-30T10:00:00Z", "Items": []}`))
	source.SourceFormat = bigquery.JSON
	return wait(table.LoaderFrom(source).Run(ctx))
}

func loadCSV() error {
	source := bigquery.NewReaderSource(strings.NewReader("n,s\n1,x\n2,y\n"))
	source.AutoDetect = true
	return wait(dataset.Table("c").LoaderFrom(source).Run(ctx))
}

func read() error {
	rows, err := client.Query("SELECT * FROM `" + dataset.DatasetID + ".t` WHERE N = 1").Read(ctx)
	if err != nil {
		return err
	}
	var found item
	if err := rows.Next(&found); err != nil {
		return err
	}
	if found.S != "a" || found.Day != day || !found.At.Equal(at) || len(found.Items) != 1 {
		return fmt.Errorf("found %+v", found)
	}
	return nil
}

func pages() error {
	rows := table.Read(ctx)
	rows.PageInfo().MaxSize = 1
	count := 0
	for {
		var found item
		err := rows.Next(&found)
		if err == iterator.Done {
			break
		}
		if err != nil {
			return err
		}
		count++
	}
	if count != 2 {
		return fmt.Errorf("%d rows", count)
	}
	return nil
}

func parameters() error {
	found, err := query("SELECT @n + 1 AS m, @s AS s", bigquery.QueryParameter{Name: "n", Value: 1},
		bigquery.QueryParameter{Name: "s", Value: "x"})
	return want(found, err, "[[2 x]]")
}

func change() error {
	if _, err := query("UPDATE t SET S = 'z' WHERE N = 2"); err != nil {
		return err
	}
	copier := dataset.Table("copied").CopierFrom(table)
	if err := wait(copier.Run(ctx)); err != nil {
		return err
	}
	found, err := query("SELECT S FROM copied ORDER BY N")
	return want(found, err, "[[a] [z]]")
}

func listAndErrors() error {
	tables := dataset.Tables(ctx)
	count := 0
	for {
		_, err := tables.Next()
		if err == iterator.Done {
			break
		}
		if err != nil {
			return err
		}
		count++
	}
	jobs := client.Jobs(ctx)
	if _, err := jobs.Next(); err != nil {
		return err
	}
	_, err := dataset.Table("none").Metadata(ctx)
	var said *googleapi.Error
	if !errors.As(err, &said) || said.Code != 404 || count != 3 {
		return fmt.Errorf("%d tables, error %v", count, err)
	}
	return dataset.DeleteWithContents(ctx)
}

func main() {
	var err error
	client, err = bigquery.NewClient(ctx, "proj", option.WithoutAuthentication(),
		option.WithEndpoint(os.Getenv("BIGQUERY_EMULATOR_HOST")+"/bigquery/v2/"))
	if err != nil {
		panic(err)
	}
	dataset = client.Dataset(fmt.Sprintf("go_%d", time.Now().UnixNano()))
	table = dataset.Table("t")
	if err := dataset.Create(ctx, &bigquery.DatasetMetadata{Location: "US"}); err != nil {
		panic(err)
	}
	failed := 0
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"create a table", createTable},
		{"metadata, update", metadata},
		{"insertAll", insert},
		{"load NDJSON", load},
		{"load CSV with autodetect", loadCSV},
		{"read into a struct", read},
		{"read a table in pages", pages},
		{"query with parameters", parameters},
		{"update, copy job", change},
		{"list, errors, delete", listAndErrors},
	} {
		if err := step.run(); err != nil {
			failed++
			fmt.Printf("Go client: %s: FAILED %v\n", step.name, err)
		} else {
			fmt.Printf("Go client: %s: ok\n", step.name)
		}
	}
	if failed > 0 {
		os.Exit(1)
	}
}
